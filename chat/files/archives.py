"""ZIPs that people bring along: how many files one lists, and what a file in it holds, within bounds. Pure."""

from __future__ import annotations

import zipfile
import zlib
from typing import IO, Final

FAULTS: Final = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError)
"""What Python raises for a ZIP that it cannot read. A RuntimeError is one with a password, or of a form that it lacks."""
_ENTRY: Final = b"PK\x01\x02"
"""Each entry of the list begins so. Source: PKWARE, "APPNOTE", section 4.3.12."""
_BOUNDED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Python unpacks other ways without a limit: some hundred bytes become gigabytes, however few are asked for."""
_MOST_DIRECTORY_BYTES: Final = 16 * 1024**2
"""Of the list of entries, of which Python makes objects before anybody can count them."""
_END: Final = b"PK\x05\x06"
_LARGE_END: Final = b"PK\x06\x07"
_END_BYTES: Final = 22


class TooManyFiles(Exception):
    """An archive lists more files than are read."""


def opened(file: IO[bytes], most: int) -> zipfile.ZipFile:
    """Open an archive where it lies, after a look at its list. Source: PKWARE, "APPNOTE", sections 4.3.15 and 4.3.16.

    Raises:
        TooManyFiles: it lists more entries than that, or is of the form that can.
        BadZipFile: it is damaged.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 0xFFFF - 20))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise zipfile.BadZipFile
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    # The other form is for more entries than are read.
    is_larger = tail[max(0, at - 20) : at].startswith(_LARGE_END)
    if is_larger or length > _MOST_DIRECTORY_BYTES:
        raise TooManyFiles
    file.seek(max(0, size - len(tail) + at - length))
    if lists_more_than(file.read(length), most):
        raise TooManyFiles
    file.seek(0)
    return zipfile.ZipFile(file)


def lists_more_than(content: bytes, most: int) -> bool:
    """Whether an archive, or the list in one, may have more entries than that.

    Python makes an object of each before anybody can count them, which takes seconds.
    """
    return content.count(_ENTRY) > most


def entry_in(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    """Open an entry to read it piece by piece. No more comes of it than it says of its size.

    Raises:
        BadZipFile: it is damaged, or packed in a way that cannot be unpacked within bounds.
    """
    if entry.compress_type not in _BOUNDED or entry.header_offset < 0:
        raise zipfile.BadZipFile
    return packed.open(entry)


def unpacked(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """What an entry holds, up to so many bytes, whatever it says of its size.

    Raises:
        BadZipFile: it is damaged, or packed in a way that cannot be unpacked within bounds.
    """
    with entry_in(packed, entry) as file:
        return file.read(most)
