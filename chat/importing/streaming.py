"""JSON from strangers, read as it arrives: of a large file, one chat alone is in memory, and no more of it than it may take. Pure."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Final

import ijson

MOST_CHAT_MEMORY: Final = 200 * 1024**2
"""Bytes that one chat takes in memory, as Python's objects. Two bytes of a file can become sixty."""
MOST_AT_ONCE: Final = 1024**2
"""Bytes of a file that is read as a whole."""
LONGEST_VALUE: Final = 8 * 1024**2
"""Bytes of a file for one text in it, which is in memory as a whole before anybody knows how long it is."""
_DEEPEST: Final = 200
LONGEST_NUMBER: Final = 4_000
"""Digits of a number."""
_DIGITS: Final = b"0123456789"
_PIECE: Final = 256 * 1024
"""Bytes that are read in one go. All that is in them is in memory at once, and a text without end is looked at again."""
_PLACE_BYTES: Final = 100
"""What a value takes in the object or list that it is in, at most."""
_MOST_NAMES: Final = 200
"""At the top of a value of which nothing else is kept."""
_BEGINNINGS: Final = frozenset({"start_map", "start_array"})
_ENDS: Final = frozenset({"end_map", "end_array"})
_MARK: Final = b"\xef\xbb\xbf"
_ESCAPE: Final = b"\\"
_LONGEST_PAIR: Final = 12
"""Bytes of a character that two escapes stand for."""
_FIRST_HALF: Final = re.compile(rb"\\ud[89ab][0-9a-f]{2}", re.I)
_HALVES: Final = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(d[89a-f][0-9a-f]{2}))", re.I
)
"""Characters that two escapes stand for, and escapes that are one half of such."""


class ValueTooLong(Exception):
    """A value of the file is longer than any that is read."""


@dataclass(frozen=True, slots=True)
class StreamedValue:
    """One value of the file."""

    value: Any
    is_too_large: bool = False
    """It takes more memory than it may. Then it is only what is at its top, without lists and objects."""


def values_in(file: IO[bytes], *, skimmed: int = 0) -> Iterator[StreamedValue]:
    """The values of a list, or the one value that is no list, each read when it is asked for.

    Args:
        file: holds JSON in UTF-8.
        skimmed: of so many at the beginning, only what is at their top is kept.

    Raises:
        ValueTooLong: a text in it is longer than any that is read.
        ValueError: it is no JSON, or ends too early.
    """
    beginning = file.read(MOST_AT_ONCE + 1)
    if len(beginning) <= MOST_AT_ONCE:
        yield from map(StreamedValue, _all_of(beginning))
        return
    events = _events(file, beginning)
    try:
        event, value = next(events)
        if event != "start_array":
            yield _one(events, event, value, is_skimmed=skimmed > 0)
        else:
            place = 0
            for event, value in events:
                if event != "end_array":
                    yield _one(events, event, value, is_skimmed=place < skimmed)
                    place += 1
        for _rest in events:
            raise ValueError
    except (ijson.JSONError, ArithmeticError) as error:
        raise ValueError from error


def _all_of(text: bytes) -> list[Any]:
    """The same of a file that is small enough to be read at once, with numbers of any length."""
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except RecursionError as error:
        raise ValueError from error
    return value if isinstance(value, list) else [value]


def _events(file: IO[bytes], beginning: bytes) -> Iterator[tuple[str, Any]]:
    watched = _Watched(file, beginning)
    # With floats, whole numbers would end at 64 bits.
    for event in ijson.basic_parse(watched, use_float=False, buf_size=_PIECE):
        watched.silent = 0
        kind, value = event
        yield (kind, float(value)) if kind == "number" and type(value) is not int else event


class _Watched:
    """A file whose texts can all be read, and that ends if too much of it comes without anything that could be told of it."""

    def __init__(self, file: IO[bytes], beginning: bytes) -> None:
        self.silent = 0
        self._beginning = io.BytesIO(beginning.removeprefix(_MARK))
        self._file = file
        self._kept = b""
        self._is_in_text = False
        self._digits = 0
        """At the end of the last piece."""

    def read(self, size: int) -> bytes:
        """The next piece. Whoever cuts a text within a character leaves a half, which is no fault of the file.

        Raises:
            ValueTooLong: too much came of which nothing could be told.
            ValueError: a number is longer than any that is read.
        """
        if size == 0:
            return b""  # asked once, to see of which kind it is
        while piece := self._beginning.read(size) or self._file.read(size):
            self.silent += len(piece)
            if self.silent > LONGEST_VALUE:
                raise ValueTooLong
            piece, self._kept = _cut(self._kept + piece)
            if piece:
                self._look_for_long_numbers(piece)
                return _without_halves(piece)
        piece, self._kept = self._kept, b""
        return _without_halves(piece)

    def _look_for_long_numbers(self, piece: bytes) -> None:
        """Find them before the library does: Python refuses them, and the library reads on as if it had not."""
        first = len(piece) - len(piece.lstrip(_DIGITS))
        if self._digits + first > LONGEST_NUMBER and not self._is_in_text:
            raise ValueError
        # Longer ones have a digit at one of these places.
        for at in range(LONGEST_NUMBER, len(piece), LONGEST_NUMBER):
            if piece[at] not in _DIGITS:
                continue
            before = piece[at - LONGEST_NUMBER : at]
            behind = piece[at : at + LONGEST_NUMBER]
            begin = at - len(before) + len(before.rstrip(_DIGITS))
            end = at + len(behind) - len(behind.lstrip(_DIGITS))
            is_in_text = self._is_in_text ^ _ends_in_text(piece[:begin])
            if end - begin > LONGEST_NUMBER and not is_in_text:
                raise ValueError
        last = len(piece) - len(piece.rstrip(_DIGITS))
        self._digits = last + (self._digits if last == len(piece) else 0)
        self._is_in_text ^= _ends_in_text(piece)


def _ends_in_text(piece: bytes) -> bool:
    """Whether a text begins in a piece of JSON that does not end in it; no escape is cut."""
    if b"\\\\" in piece:
        piece = piece.replace(b"\\\\", b"")
    return (piece.count(b'"') - piece.count(b'\\"')) % 2 == 1


def _cut(piece: bytes) -> tuple[bytes, bytes]:
    """Give what can be read now, and an escape at the end that may go on in the next piece."""
    at = piece.find(_ESCAPE, max(0, len(piece) - _LONGEST_PAIR))
    if at < 0:
        return piece, b""
    at = _begin_of(piece, at)
    if _FIRST_HALF.match(piece, max(0, at - _LONGEST_PAIR // 2)):
        at = _begin_of(piece, max(0, at - _LONGEST_PAIR // 2))
    return piece[:at], piece[at:]


def _begin_of(piece: bytes, at: int) -> int:
    """Where the escape begins that this is the mark of: in a run of marks, each second one belongs to the one before."""
    run = at - len(piece[:at].rstrip(_ESCAPE))
    return at - run % 2


def _without_halves(piece: bytes) -> bytes:
    if b"\\ud" not in piece and b"\\uD" not in piece:
        return piece
    return _HALVES.sub(lambda found: found[1] + b"\\ufffd" if found[2] else found[0], piece)


def _one(
    events: Iterator[tuple[str, Any]], first: str, given: Any, *, is_skimmed: bool = False
) -> StreamedValue:
    """Put one value together from what begins with this event."""
    if first not in _BEGINNINGS:
        return StreamedValue(given)
    top: Any = {} if first == "start_map" else []
    if is_skimmed:
        return StreamedValue(_skimmed(events, top))
    here, key = top, ""
    outside: list[Any] = []
    names: dict[str, str] = {}
    room = MOST_CHAT_MEMORY
    for event, value in events:
        if event == "map_key":
            # The same few names come again and again.
            if (known := names.get(value)) is None:
                known = names[value] = value
                room -= sys.getsizeof(value) + _PLACE_BYTES
            key = known
            continue
        if event in _ENDS:
            if not outside:
                return StreamedValue(top)
            here = outside.pop()
            continue
        new: Any = {} if event == "start_map" else [] if event == "start_array" else value
        room -= sys.getsizeof(new) + _PLACE_BYTES
        if type(here) is dict:
            here[key] = new
        else:
            here.append(new)
        if event in _BEGINNINGS:
            outside.append(here)
            here = new
            if len(outside) > _DEEPEST:
                raise ValueError
        if room < 0:
            return StreamedValue(
                _skimmed(events, _top_of(top), depth=len(outside)), is_too_large=True
            )
    raise ValueError


def _skimmed(events: Iterator[tuple[str, Any]], top: Any, *, depth: int = 0) -> Any:
    """Read on to the end of a value, of which only what is at its top is kept.

    Args:
        depth: how many lists and objects are open within it.
    """
    key = ""
    for event, value in events:
        if event in _ENDS:
            if depth == 0:
                return top
            depth -= 1
            continue
        if depth == 0:
            if event == "map_key":
                key = value
            elif isinstance(top, dict) and len(top) < _MOST_NAMES:
                top[key] = None if event in _BEGINNINGS else value
        if event in _BEGINNINGS:
            depth += 1
            if depth > _DEEPEST:
                raise ValueError
    raise ValueError


def _top_of(value: Any) -> Any:
    """What is at the top of a value, without what lists and objects in it hold."""
    if isinstance(value, list):
        return []
    some = islice(value.items(), _MOST_NAMES)
    return {name: None if isinstance(one, (dict, list)) else one for name, one in some}
