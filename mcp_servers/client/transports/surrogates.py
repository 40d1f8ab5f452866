r"""Halves of characters in JSON: a program cut a text in the middle of an emoji, and wrote the rest as `\ud83d`.

Such an escape stands for no character, and the SDK would refuse the whole message. It becomes the replacement
character here, which is as long. Pure.
Source: RFC 8259, section 8.2; ECMA-262, "JSON.stringify", which writes halves as escapes.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!%b)|[c-fC-F][0-9a-fA-F]{2}(?<!%b%b))"
    % (_LOW, _HIGH, _LOW)
)
_BEGUN: Final = re.compile(
    rb"\\(?:u(?:[dD](?:[0-9a-fA-F]{1,2}|[89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD][0-9a-fA-F]{0,2})?)?)?)?)?)?\Z"
)
_LONGEST_BEGUN: Final = 11
_REPLACEMENT: Final = rb"\ufffd"
_MOST_HALVES: Final = 10_000
"""All connections share one loop."""


def without_halves(text: bytes) -> bytes:
    """JSON in which each escape is a character, or belongs to one. Of many halves, only the first are mended."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    mended: bytearray | None = None
    for found in islice(_HALF.finditer(_masked(text)), _MOST_HALVES):
        mended = mended or bytearray(text)
        mended[found.start() : found.end()] = _REPLACEMENT
    return bytes(mended) if mended is not None else text


class HalfMender:
    """The same for a text that comes piece by piece. It keeps an escape that is not whole for the next piece."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, piece: bytes) -> bytes:
        """What is certain by now."""
        piece = self._kept + piece
        begun = _BEGUN.search(_masked(piece), max(0, len(piece) - _LONGEST_BEGUN))
        end = begun.start() if begun is not None else len(piece)
        self._kept = piece[end:]
        return without_halves(piece[:end])

    def end(self) -> bytes:
        """What is left."""
        return without_halves(self._kept)


def _masked(text: bytes) -> bytes:
    """The same, with two other bytes for each backslash that is escaped: those that are left begin an escape."""
    return text.replace(rb"\\", b"--")
