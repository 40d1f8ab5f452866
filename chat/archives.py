"""ZIPs that people bring along: how many files one lists, and what a file in it holds, within bounds. Pure."""

from __future__ import annotations

import zipfile
from typing import Final

_ENTRY: Final = b"PK\x01\x02"
"""Each entry of the list begins so. Source: PKWARE, "APPNOTE", section 4.3.12."""
_BOUNDED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Python unpacks other ways without a limit: some hundred bytes become gigabytes, however few are asked for."""


def lists_more_than(content: bytes, most: int) -> bool:
    """Whether an archive, or the list in one, may have more entries than that.

    Python makes an object of each before anybody can count them, which takes seconds.
    """
    return content.count(_ENTRY) > most


def unpacked(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """What an entry holds, up to so many bytes, whatever it says of its size.

    Raises:
        BadZipFile: it is damaged, or packed in a way that cannot be unpacked within bounds.
    """
    if entry.compress_type not in _BOUNDED or entry.header_offset < 0:
        raise zipfile.BadZipFile
    with packed.open(entry) as file:
        return file.read(most)
