"""An answer over Streamable HTTP counts for the request in whose response it comes, and for no other.

The SDK believes the id of an answer that is one JSON text, so that it could end another call of the connection. In an
event stream it takes any answer for the one to the stream's request. A server that confuses two calls, perhaps of two
people, would have one read what is the other's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import httpx2
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mcp_servers.client.transports.http import MAX_EVENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable


class _Head(TypedDict, total=False):
    """What tells a JSON-RPC message; to read no more than this costs a tenth of reading all of it."""

    id: int | str | None
    method: Any


_HEAD: Final = TypeAdapter(_Head)


def asked_id(body: bytes) -> str | None:
    """The id of a request of ours, as text; None: it is no request, and nothing answers it."""
    head = _head_of(body)
    return str(head["id"]) if "method" in head and head.get("id") is not None else None


def answers_another(message: str | bytes, request_id: str) -> bool:
    """Whether a message is an answer, and to another request."""
    head = _head_of(message)
    return "method" not in head and head.get("id") is not None and str(head["id"]) != request_id


def _head_of(message: str | bytes) -> _Head:
    try:
        return _HEAD.validate_json(message)
    except ValidationError:
        return {}  # the SDK says what is wrong with it


class OwnAnswers(httpx2.AsyncByteStream):
    """The event stream of one request, without answers to others."""

    def __init__(
        self, response: httpx2.Response, request_id: str, on_event_id: Callable[[str], None]
    ) -> None:
        self._response = response
        self._request_id = request_id
        self._on_event_id = on_event_id
        """Told with what the rest of the stream can be asked for, should it break off."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for event in httpx2.EventSource(self._response, MAX_EVENT_BYTES):
            if event.id:
                self._on_event_id(event.id)
            if not answers_another(event.data, self._request_id):
                yield _as_bytes(event)

    async def aclose(self) -> None:
        await self._response.aclose()


def _as_bytes(event: httpx2.ServerSentEvent) -> bytes:
    lines = [f"event: {event.event}", *(f"data: {line}" for line in event.data.split("\n"))]
    if event.id:
        lines.append(f"id: {event.id}")
    if event.retry is not None:
        lines.append(f"retry: {event.retry}")
    return ("\n".join(lines) + "\n\n").encode()
