"""Bounds on what is read of an answer, and for how long."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import anyio
import httpx2
from django.utils.translation import gettext_noop as _


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of an answer is read, and how long."""

    connect_seconds: float = 10.0
    idle_seconds: float | None = 60.0
    """Longest silence, before the first byte and between two reads. None: the caller has its own deadline."""
    total_seconds: float | None = 120.0
    """For head and body together; event streams are exempt."""
    body_bytes: int = 10 * 2**20
    line_bytes: int = 2**20
    """Longest line of an event stream."""
    stream_bytes: int | None = None
    """Whole event stream."""
    stream_lines_per_second: float | None = None
    """Of all event streams of a client together, once `LINES_AT_ONCE` have been read. Faster ones are read later."""


LINES_AT_ONCE: Final = 50_000
"""Lines, or whatever else is counted."""


class Pace:
    """How fast lines, bytes or messages are read: so many at once, and so many per second from then on."""

    def __init__(self, per_second: float, *, at_once: int | None = None) -> None:
        self._per_second = per_second
        self._at_once = LINES_AT_ONCE if at_once is None else at_once
        self._behind_at = 0.0
        """When all that was read would have been, at that speed."""

    def take(self, count: int) -> float:
        """Count what was read; gives how long to wait before it is handed on."""
        now = time.monotonic()
        self._behind_at = self._after(count, now)
        return max(0.0, self._behind_at - now)

    def has_room(self) -> bool:
        """Whether one more would not have to wait."""
        now = time.monotonic()
        return self._after(1, now) <= now

    def _after(self, count: int, now: float) -> float:
        room = self._at_once / self._per_second
        return max(self._behind_at, now - room) + count / self._per_second


COMPRESSED: Final = "The server sent a compressed answer, which was not asked for."


class ResponseTooLarge(httpx2.DecodingError):
    """An answer was larger than its bound; nothing more of it was read."""


class BoundedStream(httpx2.AsyncByteStream):
    """A response body that ends with an error as soon as it is too large, has an endless line or takes too long."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        *,
        body_bytes: int | None,
        line_bytes: int | None,
        deadline: float | None,
        pace: Pace | None = None,
    ) -> None:
        self._inner = inner
        self._body_bytes = body_bytes
        self._line_bytes = line_bytes
        self._deadline = deadline
        self._pace = pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = line = 0
        async for chunk in self._inner:
            total += len(chunk)
            if self._body_bytes is not None and total > self._body_bytes:
                raise ResponseTooLarge(
                    _("The answer is larger than %(body_bytes)s bytes.")
                    % {"body_bytes": self._body_bytes}
                )
            if self._line_bytes is not None:
                newline = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
                line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
                if line > self._line_bytes:
                    raise ResponseTooLarge(
                        _("A line of the answer is larger than %(line_bytes)s bytes.")
                        % {"line_bytes": self._line_bytes}
                    )
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("The answer took too long.")
            if self._pace is not None:
                pause = self._pace.take(max(chunk.count(b"\n"), chunk.count(b"\r")))
                if pause:
                    await anyio.sleep(pause)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class RefusedStream(httpx2.AsyncByteStream):
    """A compressed response body, of which nothing is read."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise httpx2.DecodingError(COMPRESSED)

    async def aclose(self) -> None:
        await self._inner.aclose()
