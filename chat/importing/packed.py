"""Copies of somebody's data, as Trellis makes them: a ZIP that is read where it lies, one chat after the other.

Nothing of it is trusted: neither how many entries it says it has nor how large they are. Pure.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Container, Iterator
from itertools import islice
from typing import IO, Any, Final

from django.utils.translation import gettext as _

from chat import archives
from chat.importing.reading import RawChat, Unreadable, source_of

MANIFEST: Final = "trellis.json"
"""The entry by which a copy is known."""
FORMAT: Final = "trellis-data-copy"
CHAT: Final = "chat.json"
MOST_UNPACKED_BYTES: Final = 2 * 1024**3
"""Of all entries of one ZIP together. They are unpacked one at a time."""
MOST_CHAT_BYTES: Final = 50 * 1024**2
"""Of one chat's JSON, which is in memory as a whole."""
MOST_ENTRIES: Final = 50_000
_MOST_MANIFEST_BYTES: Final = 64 * 1024
_MOST_DIRECTORY_BYTES: Final = 16 * 1024**2
"""Of the list of entries, of which Python makes objects before anybody can count them."""
_END: Final = b"PK\x05\x06"
_LARGE_END: Final = b"PK\x06\x07"
_END_BYTES: Final = 22
_CHATS: Final = re.compile(rf"chats/[^/]+/{re.escape(CHAT)}")
_FAULTS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
)


def is_copy(file: IO[bytes]) -> bool:
    """Whether a file is a copy of somebody's data, by its manifest; it is read from its beginning afterwards."""
    try:
        with _opened(file) as packed:
            entry = packed.getinfo(MANIFEST)
            told = json.loads(archives.unpacked(packed, entry, _MOST_MANIFEST_BYTES))
        return isinstance(told, dict) and told.get("format") == FORMAT
    except (Unreadable, KeyError, RecursionError, *_FAULTS):
        return False
    finally:
        file.seek(0)


class PackedCopy:
    """A copy that is read."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read what is in it.

        Raises:
            Unreadable: it is damaged, or holds more than is read.
        """
        try:
            self._packed = _opened(file)
        except _FAULTS as error:
            raise _damaged() from error
        self._entries = {one.filename: one for one in self._packed.infolist()}
        # What an entry says of its size is all that is ever unpacked of it.
        if sum(one.file_size for one in self._entries.values()) > MOST_UNPACKED_BYTES:
            raise Unreadable(
                _("This ZIP unpacks to more than %(most)s MB.")
                % {"most": MOST_UNPACKED_BYTES // 1024**2}
            )
        self._chats = sorted(filter(_CHATS.fullmatch, self._entries))

    def chats(self, first: int = 0) -> Iterator[RawChat]:
        """Its chats from the one at this place on. One that cannot be read says so, and keeps no other."""
        return (self._chat(name) for name in islice(self._chats, first, None))

    def content_of(self, place: str, most: int) -> bytes | None:
        """What an entry holds; None if it is damaged, or has more bytes than that."""
        entry = self._entries.get(place)
        if entry is None or entry.file_size > most:
            return None
        try:
            return self._unpacked(entry)
        except _FAULTS:
            return None

    def _chat(self, name: str) -> RawChat:
        entry = self._entries[name]
        if entry.file_size > MOST_CHAT_BYTES:
            fault = _("It is larger than %(most)s MB.") % {"most": MOST_CHAT_BYTES // 1024**2}
            return RawChat(None, None, fault=fault)
        try:
            raw: Any = json.loads(self._unpacked(entry))
        except (RecursionError, *_FAULTS):
            return RawChat(None, None, fault=_("It is damaged in the ZIP."))
        places: Container[str] = self._entries
        return RawChat(source_of(raw), raw, places)

    def _unpacked(self, entry: zipfile.ZipInfo) -> bytes:
        # With a limit, else all that it unpacks to is in memory before the rest is dropped.
        return archives.unpacked(self._packed, entry, entry.file_size + 1)


def _opened(file: IO[bytes]) -> zipfile.ZipFile:
    _check_directory(file)
    return zipfile.ZipFile(file)


def _check_directory(file: IO[bytes]) -> None:
    """Look at the list of entries before it is read. Source: PKWARE, "APPNOTE", sections 4.3.15 and 4.3.16."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 0xFFFF - 20))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise _damaged()
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    # The other form is for more than that, and Trellis never writes it.
    is_larger = tail[max(0, at - 20) : at].startswith(_LARGE_END)
    if is_larger or length > _MOST_DIRECTORY_BYTES or _lists_too_many(file, size, tail, at, length):
        raise Unreadable(_("This ZIP holds too many files."))
    file.seek(0)


def _lists_too_many(file: IO[bytes], size: int, tail: bytes, at: int, length: int) -> bool:
    """Whether the list, which is so long and ends where its end is told, has too many entries."""
    end = size - len(tail) + at
    file.seek(max(0, end - length))
    return archives.lists_more_than(file.read(length), MOST_ENTRIES)


def _damaged() -> Unreadable:
    return Unreadable(_("This ZIP is damaged. Download it again."))
