"""Copies of somebody's data, as Trellis makes them: a ZIP that is read where it lies, one chat after the other.

Nothing of it is trusted: neither how many entries it says it has nor how large they are. Pure.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from itertools import islice
from typing import IO, Final

from django.utils.translation import gettext as _

from chat.files import archives
from chat.importing.reading import RawChat, UnreadableImport, raw_chat
from chat.importing.streaming import ValueTooLong, values_in

MANIFEST: Final = "trellis.json"
"""The entry by which a copy is known."""
FORMAT: Final = "trellis-data-copy"
CHAT: Final = "chat.json"
MOST_UNPACKED_BYTES: Final = 2 * 1024**3
"""Of all entries of one ZIP together. They are unpacked one at a time."""
MOST_CHAT_BYTES: Final = 50 * 1024**2
"""Of one chat's JSON."""
MOST_ENTRIES: Final = 50_000
_MOST_MANIFEST_BYTES: Final = 64 * 1024
_CHATS: Final = re.compile(rf"chats/[^/]+/{re.escape(CHAT)}")


def is_copy(file: IO[bytes]) -> bool:
    """Whether a file is a copy of somebody's data, by its manifest; it is read from its beginning afterwards."""
    try:
        with _opened(file) as packed:
            entry = packed.getinfo(MANIFEST)
            manifest = json.loads(archives.unpacked(packed, entry, _MOST_MANIFEST_BYTES))
        return isinstance(manifest, dict) and manifest.get("format") == FORMAT
    except (UnreadableImport, KeyError, RecursionError, *archives.FAULTS):
        return False
    finally:
        file.seek(0)


class PackedCopy:
    """A copy that is read."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read what is in it.

        Raises:
            UnreadableImport: it is damaged, or holds more than is read.
        """
        try:
            self._packed = _opened(file)
        except archives.FAULTS as error:
            raise _damaged() from error
        self._entries = {one.filename: one for one in self._packed.infolist()}
        # What an entry says of its size is all that is ever unpacked of it.
        if sum(one.file_size for one in self._entries.values()) > MOST_UNPACKED_BYTES:
            raise UnreadableImport(
                _("This ZIP unpacks to more than %(most)s MB.")
                % {"most": MOST_UNPACKED_BYTES // 1024**2}
            )
        self._chats = sorted(filter(_CHATS.fullmatch, self._entries))

    def chats(self, first: int = 0) -> Iterator[RawChat]:
        """Its chats from the one at this place on. One that cannot be read says so, and keeps no other."""
        return (self._chat(name) for name in islice(self._chats, first, None))

    def skim(self) -> Iterator[RawChat]:
        """Its chats without what is said in them."""
        return (self._chat(name, skimmed=1) for name in self._chats)

    def content_of(self, place: str, most: int) -> bytes | None:
        """What an entry holds; None if it is damaged, or has more bytes than that."""
        entry = self._entries.get(place)
        if entry is None or entry.file_size > most:
            return None
        try:
            return self._unpacked(entry)
        except archives.FAULTS:
            return None

    def _chat(self, name: str, *, skimmed: int = 0) -> RawChat:
        entry = self._entries[name]
        if entry.file_size > MOST_CHAT_BYTES:
            fault = _("It is larger than %(most)s MB.") % {"most": MOST_CHAT_BYTES // 1024**2}
            return RawChat(None, None, fault=fault)
        try:
            with archives.entry_in(self._packed, entry) as text:
                (one,) = islice(values_in(text, skimmed=skimmed), 2)
        except (ValueTooLong, *archives.FAULTS):
            return RawChat(None, None, fault=_("It is damaged in the ZIP."))
        return raw_chat(one, self._entries)

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        # With a limit, else all that it unpacks to is in memory before the rest is dropped.
        return archives.unpacked(self._packed, entry, entry.file_size + 1)


def _opened(file: IO[bytes]) -> zipfile.ZipFile:
    try:
        return archives.opened(file, MOST_ENTRIES)
    except archives.TooManyFiles as error:
        raise UnreadableImport(_("This ZIP holds too many files.")) from error


def _damaged() -> UnreadableImport:
    return UnreadableImport(_("This ZIP is damaged. Download it again."))
