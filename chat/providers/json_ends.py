"""Where JSON ends that comes in pieces: each character is looked at once, however many pieces there are. Pure."""

from __future__ import annotations

import json
import re
from typing import Final

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')
_LONGEST_WORD: Final = 40
"""Of what is neither an object, a list nor a text: a number, true, false or null."""


class JsonEnd:
    """Feed it the text's pieces; it knows where an object or a list ends."""

    __slots__ = ("_depth", "_has_begun", "_in_string", "_is_escaped")

    def __init__(self) -> None:
        self._depth = 0
        self._has_begun = False
        self._in_string = False
        self._is_escaped = False

    def feed(self, text: str, at: int = 0) -> int:
        """Read on from this place; gives the place behind the end of an object or list, or the text's length."""
        while at < len(text):
            if self._is_escaped:
                self._is_escaped = False
                at += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(text, at)
            if found is None:
                return len(text)
            at = found.end()
            self._has_begun = True
            char = found.group()
            if self._in_string:
                self._is_escaped = char == "\\"
                self._in_string = char != '"'
            elif char == '"':
                self._in_string = True
            else:
                self._depth += 1 if char in "{[" else -1
                if self._depth == 0:
                    return at
        return at

    @property
    def is_over(self) -> bool:
        """Whether an object, a list or a text has begun, and nothing of it is missing."""
        return self._has_begun and self._depth == 0 and not self._in_string


class JsonPieces:
    """The pieces of one JSON text, and whether it is whole."""

    __slots__ = ("_end", "_size", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._size = 0
        self._end = JsonEnd()

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self._size += len(piece)
        at = 0
        while at < len(piece):
            at = self._end.feed(piece, at)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing. What is wrong within does not matter."""
        return self._end.is_over or (self._size <= _LONGEST_WORD and self._is_word())

    def _is_word(self) -> bool:
        try:
            json.loads("".join(self.pieces))
        except ValueError:
            return False
        return True
