"""The file: what it holds, from whom, and one chat after the other. Nothing of it is trusted. Pure."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext as _

from chat import archives
from chat.importing.chatgpt import read_chatgpt
from chat.importing.claude import read_claude
from chat.importing.own import read_own
from chat.importing.values import ImportedChat, LeftOut, clean
from chat.values import ImportSource

MOST_UNPACKED_BYTES: Final = 100 * 1024 * 1024
"""Of all texts in a ZIP together, however small it is packed."""
MOST_CHATS: Final = 10_000
"""Of one file."""
_MOST_ENTRIES: Final = 20_000
_CONVERSATIONS: Final = re.compile(r"(^|/)conversations([-_]\d+)?\.json$")
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()
_READERS: Final[Mapping[ImportSource, Callable[[Mapping[str, Any]], ImportedChat]]] = {
    ImportSource.CHATGPT: read_chatgpt,
    ImportSource.CLAUDE: read_claude,
}


class Unreadable(Exception):
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
    """A file that is read whole: a text, or a ZIP with texts."""

    def __init__(self, content: bytes) -> None:
        """Read its texts.

        Raises:
            Unreadable: it is neither text nor such a ZIP, or unpacks to too much.
        """
        self._texts = texts_of(content)

    def chats(self, first: int = 0) -> Iterator[RawChat]:
        """Its chats from the one at this place on.

        Raises:
            Unreadable: a text is no JSON, or ends too early.
        """
        every = (raw for text in self._texts for raw in chats_in(text))
        return islice(every, first, None)

    def content_of(self, place: str, most: int) -> bytes | None:
        """It holds no files."""
        return None


def texts_of(content: bytes) -> list[str]:
    """The texts of a file, or of those in a ZIP that hold chats.

    Raises:
        Unreadable: it is neither text nor such a ZIP, or unpacks to too much.
    """
    if not content.startswith(b"PK"):
        return [_decoded(content)]
    if archives.lists_more_than(content, _MOST_ENTRIES):
        raise Unreadable(_("This ZIP holds too many files. Choose conversations.json alone."))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            return [_decoded(one) for one in _unpacked(packed)]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise Unreadable(
            _("This ZIP is damaged, or has a password. Unpack it, and choose conversations.json.")
        ) from error


def _unpacked(packed: zipfile.ZipFile) -> Iterator[bytes]:
    entries = packed.infolist()
    named = [one for one in entries if _CONVERSATIONS.search(one.filename)]
    wanted = named or [one for one in entries if one.filename.endswith(".json")]
    if not wanted:
        raise Unreadable(_("This ZIP holds no conversations.json."))
    left = MOST_UNPACKED_BYTES
    for entry in sorted(wanted, key=lambda one: one.filename):
        content = archives.unpacked(packed, entry, left + 1)
        left -= len(content)
        if left < 0:
            raise Unreadable(
                _("This ZIP unpacks to more than %(most)s MB.")
                % {"most": MOST_UNPACKED_BYTES // 1024**2}
            )
        yield content


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(_("This is no JSON file, and no ZIP that holds one.")) from error


def chats_in(text: str) -> Iterator[RawChat]:
    """The chats of one text, each read from it when it is asked for: a large file is never in memory as objects.

    Raises:
        Unreadable: it is no JSON, or ends too early.
    """
    try:
        for raw in _objects(text):
            yield RawChat(source_of(raw), raw)
    except (ValueError, RecursionError, IndexError) as error:
        raise Unreadable(_("This file is damaged, or is no JSON.")) from error


def _objects(text: str) -> Iterator[Any]:
    at = _after_space(text, 0)
    if text[at] != "[":
        value, at = _DECODER.raw_decode(text, at)
        if _after_space(text, at) != len(text):
            raise ValueError
        yield value
        return
    at = _after_space(text, at + 1)
    while text[at] != "]":
        value, at = _DECODER.raw_decode(text, at)
        yield value
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)
        elif text[at] != "]":
            raise ValueError
    if _after_space(text, at + 1) != len(text):
        raise ValueError


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def source_of(raw: Any) -> ImportSource | None:
    """Who wrote a chat, by what it holds."""
    if not isinstance(raw, dict):
        return None
    if "mapping" in raw:
        return ImportSource.CHATGPT
    if "chat_messages" in raw:
        return ImportSource.CLAUDE
    return ImportSource.TRELLIS if "messages" in raw and "bud" in raw else None
