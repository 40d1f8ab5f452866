"""JSON from strangers, read as it arrives: of a large file, one chat alone is in memory, and no more of it than it may take. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Final

import ijson

MOST_CHAT_MEMORY: Final = 200 * 1024**2
"""Bytes that one chat takes in memory, as Python's objects. Two bytes of a file can become sixty."""
LONGEST_VALUE: Final = 16 * 1024**2
"""Bytes of a file for one text in it, which is in memory as a whole before anybody knows how long it is."""
_DEEPEST: Final = 200
_PLACE_BYTES: Final = 100
"""What a value takes in the object or list that it is in, at most."""
_MOST_NAMES: Final = 200
"""At the top of a value of which nothing else is kept."""
_BEGINNINGS: Final = frozenset({"start_map", "start_array"})
_ENDS: Final = frozenset({"end_map", "end_array"})
_MARK: Final = b"\xef\xbb\xbf"


class TooLong(Exception):
    """A value of the file is longer than any that is read."""


@dataclass(frozen=True, slots=True)
class Read:
    """One value of the file."""

    value: Any
    is_too_large: bool = False
    """It takes more memory than it may. Then it is only what is at its top, without lists and objects."""


def values_in(file: IO[bytes], *, skimmed: int = 0) -> Iterator[Read]:
    """The values of a list, or the one value that is no list, each read when it is asked for.

    Args:
        file: holds JSON in UTF-8.
        skimmed: of so many at the beginning, only what is at their top is kept.

    Raises:
        TooLong: a text in it is longer than any that is read.
        ValueError: it is no JSON, or ends too early.
    """
    events = _events(file)
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
    except ijson.JSONError as error:
        raise ValueError from error


def _events(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    watched = _Watched(file)
    for event in ijson.basic_parse(watched, use_float=True):
        watched.silent = 0
        yield event


class _Watched:
    """A file that ends if too much of it comes without anything that could be told of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.silent = 0
        self._file = file
        self._has_begun = False

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        if piece and not self._has_begun:
            self._has_begun = True
            piece = piece.removeprefix(_MARK)
        self.silent += len(piece)
        if self.silent > LONGEST_VALUE:
            raise TooLong
        return piece


def _one(
    events: Iterator[tuple[str, Any]], first: str, given: Any, *, is_skimmed: bool = False
) -> Read:
    """Put one value together from what begins with this event."""
    if first not in _BEGINNINGS:
        return Read(given)
    top: Any = {} if first == "start_map" else []
    if is_skimmed:
        return Read(_skimmed(events, top))
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
                return Read(top)
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
            return Read(_skimmed(events, _top_of(top), depth=len(outside)), is_too_large=True)
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
