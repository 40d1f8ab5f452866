"""How many parts a JSON text has, counted while it comes in. Pure.

Reading ten megabytes of text takes a few milliseconds; reading ten megabytes of small objects takes a second, during
which nothing else runs in the process. So the parts are bounded as well as the bytes.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext_noop as _

from workspaces.outbound import ResponseTooLarge

MAX_PARTS: Final = 75_000
"""Opening braces and brackets, and commas, outside of strings: less than a tenth of a second of reading."""
SMALL_BYTES: Final = 128 * 1024
"""A message up to this size cannot hold anything up."""

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_REST_OF_STRING: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


class PartCounter:
    """Counts the parts of one text after the other, given in pieces."""

    def __init__(self) -> None:
        self._parts = 0
        self._is_in_string = False
        self._is_escaped = False
        self._is_line_empty = True
        self._is_after_return = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the text.

        Raises:
            ResponseTooLarge: it has too many parts.
        """
        if self._is_in_string:
            piece = self._after_string(piece)
        bare = _STRING.sub(b"", piece)
        quote = bare.find(b'"')
        if quote >= 0:
            self._is_in_string = True
            self._is_escaped = _ends_escaped(bare[quote + 1 :])
            bare = bare[:quote]
        self._parts += bare.count(b",") + bare.count(b"{") + bare.count(b"[")
        if self._parts > MAX_PARTS:
            raise ResponseTooLarge(
                _("The answer has more than %(most)s parts.") % {"most": MAX_PARTS}
            )

    def feed_lines(self, piece: bytes) -> None:
        """The same for an event stream, where the lines up to an empty one are one text.

        Raises:
            ResponseTooLarge: an event has too many parts.
        Source: WHATWG HTML, "Server-sent events": Parsing an event stream.
        """
        if self._is_after_return and piece:
            # The second half of a line end, not an empty line.
            piece = piece.removeprefix(b"\n")
            self._is_after_return = False
        if not piece:
            return
        self._is_after_return = piece.endswith(b"\r")
        first, *others = _LINE_END.split(piece)
        self._feed_line(first)
        for line in others:
            if self._is_line_empty:
                self._parts = 0
            # No JSON string goes over a line end, and a comment must not hide the line after it.
            self._is_in_string = self._is_escaped = False
            self._is_line_empty = True
            self._feed_line(line)

    def _feed_line(self, piece: bytes) -> None:
        if piece:
            self._is_line_empty = False
            self.feed(piece)

    def _after_string(self, piece: bytes) -> bytes:
        """What follows the string that the piece begins in; nothing if it does not end here."""
        start = 1 if self._is_escaped and piece else 0
        end = _REST_OF_STRING.match(piece, start)
        if end is None:
            if piece:
                self._is_escaped = _ends_escaped(piece[start:])
            return b""
        self._is_in_string = self._is_escaped = False
        return piece[end.end() :]


def check_parts(text: str | bytes) -> None:
    """Make sure that a whole message can be read in a moment.

    Raises:
        ResponseTooLarge: it has too many parts.
    """
    if len(text) > SMALL_BYTES:
        PartCounter().feed(text.encode() if isinstance(text, str) else text)


def _ends_escaped(text: bytes) -> bool:
    """Whether the character after this text is escaped by it."""
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1
