"""Streams in which the work of a request goes on, and what is done when such a request has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.http import StreamingHttpResponse

from workspaces.process.departures import departure_of

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


class WorkingStream(StreamingHttpResponse):
    """A stream that begins before its answer is there: what measures the request ends with it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at_close: list[Callable[[], object]] = []

    def then(self, call: Callable[[], object]) -> None:
        """Call this when it closes, which each stream does that somebody began to read."""
        self._at_close.append(call)

    def close(self) -> None:
        """Close it, and tell those who wait for it."""
        super().close()
        waiting, self._at_close = self._at_close, []
        for call in waiting:
            call()


def when_ended(
    request: HttpRequest, response: HttpResponseBase, call: Callable[[], object]
) -> None:
    """Call this once, when the work of a request has ended or its caller has left. Mostly that is now.

    It may be called in another thread or context, and has to return at once and to raise nothing.
    """
    if not isinstance(response, WorkingStream):
        call()
        return
    first = threading.Lock()

    def end() -> None:
        if first.acquire(blocking=False):
            call()

    response.then(end)
    # Nobody closes the stream of a caller who left before it began.
    departure_of(request).then(end)
