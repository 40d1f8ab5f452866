"""The file: what it holds, from whom, and one chat after the other. Nothing of it is trusted. Pure."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from django.utils.translation import gettext as _

from chat.files import archives
from chat.importing.chatgpt import read_chatgpt
from chat.importing.claude import read_claude
from chat.importing.streaming import (
    LONGEST_VALUE,
    MOST_CHAT_MEMORY,
    StreamedValue,
    ValueTooLong,
    values_in,
)
from chat.importing.trellis_json import read_own
from chat.importing.values import ImportedChat, LeftOut, clean
from chat.values import ImportSource

MOST_UNPACKED_BYTES: Final = 100 * 1024 * 1024
"""Of all texts in a ZIP together, however small it is packed."""
MOST_CHATS: Final = 10_000
"""Of one file."""
_MOST_ENTRIES: Final = 20_000
_CONVERSATIONS: Final = re.compile(r"(^|/)conversations([-_]\d+)?\.json$")
_READERS: Final[Mapping[ImportSource, Callable[[Mapping[str, Any]], ImportedChat]]] = {
    ImportSource.CHATGPT: read_chatgpt,
    ImportSource.CLAUDE: read_claude,
}


class UnreadableImport(Exception):
    """The file as a whole is none that can be read, and why in words."""


@dataclass(frozen=True, slots=True)
class RawChat:
    """A chat of the file, not yet looked at."""

    source: ImportSource | None
    """None: nobody knows what it is."""
    raw: Any
    places: Container[str] = ()
    """Names of what is beside it in its ZIP."""
    fault: str = ""
    """Why it cannot be read."""

    @property
    def title(self) -> str:
        """What people know it by."""
        named = self.raw if isinstance(self.raw, dict) else {}
        title = named.get("title") or named.get("name")
        return clean(title[:200]).strip() if isinstance(title, str) else ""

    def read(self) -> ImportedChat:
        """Read it.

        Raises:
            LeftOut: it cannot be imported.
        """
        if self.source is None:
            raise LeftOut(self.fault or _("It is no chat that Trellis can read."))
        if self.source is ImportSource.TRELLIS:
            return read_own(self.raw, self.places)
        return _READERS[self.source](self.raw)


class TextFile:
    """A file that is read where it lies: a text, or a ZIP with texts."""

    def __init__(self, file: IO[bytes]) -> None:
        """Look at what is in it.

        Raises:
            UnreadableImport: it is a ZIP without chats or that is damaged, or unpacks to too much.
        """
        self._file = file
        self._packed: zipfile.ZipFile | None = None
        self._entries: list[zipfile.ZipInfo] = []
        file.seek(0)
        if file.read(2) == b"PK":
            try:
                self._packed = archives.opened(file, _MOST_ENTRIES)
            except archives.TooManyFiles as error:
                why = _("This ZIP holds too many files. Choose conversations.json alone.")
                raise UnreadableImport(why) from error
            except archives.FAULTS as error:
                raise _damaged_zip() from error
            self._entries = _wanted(self._packed.infolist())

    def skim(self) -> Iterator[RawChat]:
        """Its chats without what is said in them.

        Raises:
            UnreadableImport: a text is no JSON, or ends too early.
        """
        return self._chats(skimmed=MOST_CHATS + 1)

    def chats(self, first: int = 0) -> Iterator[RawChat]:
        """Its chats from the one at this place on.

        Raises:
            UnreadableImport: a text is no JSON, or ends too early.
        """
        return self._chats(skimmed=first, left_out=first)

    def _chats(self, *, skimmed: int, left_out: int = 0) -> Iterator[RawChat]:
        place = 0
        try:
            for text in self._texts():
                for one in chats_in(text, skimmed=max(0, skimmed - place)):
                    place += 1
                    if place > left_out:
                        yield one
        except archives.FAULTS as error:
            raise _damaged_zip() from error

    def _texts(self) -> Iterator[IO[bytes]]:
        if self._packed is None:
            self._file.seek(0)
            yield self._file
            return
        for entry in self._entries:
            with archives.entry_in(self._packed, entry) as text:
                yield text

    def content_of(self, place: str, most: int) -> bytes | None:
        """It holds no files."""
        return None


def _wanted(entries: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Those that hold chats.

    Raises:
        UnreadableImport: there are none, or they unpack to too much.
    """
    named = [one for one in entries if _CONVERSATIONS.search(one.filename)]
    wanted = named or [one for one in entries if one.filename.endswith(".json")]
    if not wanted:
        raise UnreadableImport(_("This ZIP holds no conversations.json."))
    # What an entry says of its size is all that is ever unpacked of it.
    if sum(one.file_size for one in wanted) > MOST_UNPACKED_BYTES:
        raise UnreadableImport(
            _("This ZIP unpacks to more than %(most)s MB.")
            % {"most": MOST_UNPACKED_BYTES // 1024**2}
        )
    return sorted(wanted, key=lambda one: one.filename)


def _damaged_zip() -> UnreadableImport:
    return UnreadableImport(
        _("This ZIP is damaged, or has a password. Unpack it, and choose conversations.json.")
    )


def chats_in(text: IO[bytes], *, skimmed: int = 0) -> Iterator[RawChat]:
    """The chats of one text, each read from it when it is asked for.

    Args:
        skimmed: of so many at the beginning, nothing is kept of what is said in them.

    Raises:
        UnreadableImport: it is no JSON, or ends too early.
    """
    try:
        for one in values_in(text, skimmed=skimmed):
            yield raw_chat(one)
    except ValueTooLong as error:
        raise UnreadableImport(
            _("This file holds a text of more than %(most)s MB.")
            % {"most": LONGEST_VALUE // 1024**2}
        ) from error
    except ValueError as error:
        raise UnreadableImport(_("This file is damaged, or is no JSON.")) from error


def raw_chat(one: StreamedValue, places: Container[str] = ()) -> RawChat:
    """A chat of the file, not yet looked at.

    Args:
        places: names of what is beside it in its ZIP.
    """
    if one.is_too_large:
        fault = _("It takes more than %(most)s MB of memory.") % {
            "most": MOST_CHAT_MEMORY // 1024**2
        }
        return RawChat(None, one.value, fault=fault)
    return RawChat(source_of(one.value), one.value, places)


def source_of(raw: Any) -> ImportSource | None:
    """Who wrote a chat, by what it holds."""
    if not isinstance(raw, dict):
        return None
    if "mapping" in raw:
        return ImportSource.CHATGPT
    if "chat_messages" in raw:
        return ImportSource.CLAUDE
    return ImportSource.TRELLIS if "messages" in raw and "bud" in raw else None
