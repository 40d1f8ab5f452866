"""Reads server-sent events out of bytes, wherever the network cuts them. Pure.

Source: WHATWG HTML, "Server-sent events", 9.2.6: CRLF, LF and CR end lines; lines that begin with
a colon are comments; several data lines of one event are joined by a newline.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

_MOST_CHARACTERS = 4 * 1024 * 1024
_OWN_KINDS = frozenset(
    {"", "message", "error", "data", "chunk", "completion", "completion.chunk", "delta"}
)
"""Names that servers give to parts of an answer; mostly they give none."""
_OWN_PREFIX = "response."
"""Of the Responses API's events."""


class EventTooLong(ValueError):
    """One event is longer than anything sensible."""


class EventStreamReader:
    """Feed it chunks; it gives the data of each event that is complete, and counts those of foreign kinds."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[str] = []
        """The line that has begun; joined once it ends, so that many small pieces are not looked at again and again."""
        self._rest_size = 0
        self._data: list[str] = []
        self._size = 0
        self._kind = ""
        self.ignored = 0
        """How many events named something that no answer is made of."""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The events that end within this chunk.

        Raises:
            EventTooLong: an event does not end.
        """
        piece = self._decoder.decode(chunk)
        if "\n" not in piece and "\r" not in piece and not self._ends_in_cr:
            self._hold(piece)
            return
        text = "".join((*self._rest, piece))
        # A CR at the very end may be the first half of CRLF.
        held = "\r" if text.endswith("\r") else ""
        lines = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._rest, self._rest_size = [], 0
        self._hold(lines.pop() + held)
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield from self._complete()
            else:
                self._kind = ""

    def close(self) -> Iterator[str]:
        """The last event, of a server that does not end it with an empty line."""
        rest = "".join(self._rest).rstrip("\r")
        self._rest, self._rest_size = [], 0
        if rest:
            self._take(rest)
        if self._data:
            yield from self._complete()

    @property
    def _ends_in_cr(self) -> bool:
        return bool(self._rest) and self._rest[-1].endswith("\r")

    def _hold(self, piece: str) -> None:
        if not piece:
            return
        self._rest.append(piece)
        self._rest_size += len(piece)
        if self._rest_size > _MOST_CHARACTERS:
            raise EventTooLong

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name == "event":
            self._kind = value.strip()
            return
        if name == "error" and value.lstrip().startswith("{"):
            # Older llama.cpp servers report a failure in a field of this name.
            value = f'{{"error":{value.strip()}}}'
        elif name != "data":
            return
        value = value.removeprefix(" ")
        self._size += len(value)
        if self._size > _MOST_CHARACTERS:
            raise EventTooLong
        self._data.append(value)

    def _complete(self) -> Iterator[str]:
        data = "\n".join(self._data)
        kind, self._kind = self._kind, ""
        self._data.clear()
        self._size = 0
        if kind in _OWN_KINDS or kind.startswith(_OWN_PREFIX):
            yield data
        else:
            self.ignored += 1
