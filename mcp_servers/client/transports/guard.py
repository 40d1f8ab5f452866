"""Turns what goes wrong on HTTP into JSON-RPC errors, because the SDK loses or dies of anything else.

The SDK reports every refused request as "Server returned an error response", without its status; and an exception of
the HTTP library in one request ends the whole connection with all other calls on it. This transport answers such a
request with a JSON-RPC error body instead, which the SDK hands to that one caller as an `MCPError` with our `data`.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final, cast

import httpx2

from mcp_servers.client.transports.density import PartCounter
from mcp_servers.client.transports.http_failures import (
    GUARD_ERROR_CODE,
    error_data,
    failure_data,
    is_in_session,
    is_of_sessions,
    kind_of_status,
)
from mcp_servers.client.transports.messages import is_recorded
from mcp_servers.client.transports.own_answers import OwnAnswers, answers_another, asked_id
from mcp_servers.client.transports.surrogates import HalfMender, without_halves
from workspaces.outbound.bounds import Pace

_EVENTS: Final = "text/event-stream"
_TRANSPORT_FAILED_STATUS: Final = 599
_MOST_MOVES: Final = 3
_MOST_KNOWN: Final = 16
_MOST_RESUMABLE: Final = 200
_MAX_ERROR_BODY: Final = 64 * 1024
STREAMS_AT_ONCE: Final = 20
"""That one connection may ask for right away."""
STREAMS_PER_SECOND: Final = 2.0
"""And from then on. The SDK comes back as soon as a server wants it to, without end."""
DELETE_SECONDS: Final = 3.0
"""How long a server may take to take note of the end of a session."""


class GuardTransport(httpx2.AsyncBaseTransport):
    """Wraps a transport; every POST gets an answer that the SDK understands."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self._moved: dict[httpx2.URL, httpx2.URL] = {}
        """Where the server has redirected to, so that a call is sent there at once."""
        self._pace = Pace(STREAMS_PER_SECOND, at_once=STREAMS_AT_ONCE)
        self._resumable: OrderedDict[str, str] = OrderedDict()
        """The last event of a request's stream, and the request: another stream goes on from there."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            return await self._delete(request)
        if request.method != "POST":
            return await self._listen(request)
        asked = asked_id(await request.aread())  # one that follows a redirect is not read yet
        for _ in range(_MOST_MOVES):
            request.url = self._moved.get(request.url, request.url)
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            return _failure(request, error)
        content_type = _type_of(response)
        if response.status_code == 202:
            return response
        if response.is_redirect:
            return await self._redirected(request, response)
        if response.is_success and content_type == _EVENTS:
            return self._bounded(request, response, asked)
        if response.is_success and content_type not in ("application/json", ""):
            await response.aclose()
            return _error(request, response, "not_mcp", status=502)
        try:
            body = await _read(response)
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            return _failure(request, error)
        finally:
            await response.aclose()
        if not response.is_success:
            return _refused(request, response, body)
        return _answered(request, response, body, asked)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """Open the stream of the server's own messages, or the rest of one that broke off."""
        await asyncio.sleep(self._pace.take(1))
        response = await self._inner.handle_async_request(request)
        if _type_of(response) != _EVENTS:
            return response
        asked = self._resumable.get(request.headers.get("last-event-id", ""))
        return self._bounded(request, response, asked)

    def _bounded(
        self, request: httpx2.Request, response: httpx2.Response, asked: str | None
    ) -> httpx2.Response:
        """The same, of an event stream that the SDK can read.

        Args:
            asked: the request that it answers; None: none.
        """
        # An event stream is UTF-8; in another encoding, what is counted would not be what is read.
        response.headers["content-type"] = _EVENTS
        response.request = request
        response.stream = _CountedStream(cast("httpx2.AsyncByteStream", response.stream))
        if asked is None:
            return response
        own = OwnAnswers(response, asked, partial(self._note_event, asked))
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=own, request=request
        )

    def _note_event(self, asked: str, event_id: str) -> None:
        self._resumable[event_id] = asked
        if len(self._resumable) > _MOST_RESUMABLE:
            self._resumable.popitem(last=False)

    async def _redirected(
        self, request: httpx2.Request, response: httpx2.Response
    ) -> httpx2.Response:
        """Let a request of ours go on to where the server has moved; no call is sent to two addresses."""
        target = _target_on_origin(request, response)
        is_full = len(self._moved) >= _MOST_KNOWN
        if target is None or is_full or is_recorded(request.content):
            await response.aclose()
            return _error(request, response, "redirect")
        self._moved[request.url] = target
        return response

    async def _delete(self, request: httpx2.Request) -> httpx2.Response:
        """End the session; of the answer only the status matters.

        Raises:
            httpx2.ReadTimeout: there was none in time.
        """
        try:
            async with asyncio.timeout(DELETE_SECONDS):
                response = await self._inner.handle_async_request(request)
                await response.aclose()
        except TimeoutError:
            raise httpx2.ReadTimeout("no answer to DELETE", request=request) from None
        return httpx2.Response(response.status_code, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _type_of(response: httpx2.Response) -> str:
    given: str = response.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _answered(
    request: httpx2.Request, response: httpx2.Response, body: bytes, asked: str | None
) -> httpx2.Response:
    if not _is_rpc(body):
        return _error(request, response, "not_mcp", status=502)
    if asked is not None and answers_another(body, asked):
        return _error(request, response, "unreadable", status=502)
    return httpx2.Response(
        response.status_code,
        headers=_kept_headers(response),
        content=without_halves(body),
        request=request,
    )


def _refused(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    kind = kind_of_status(response.status_code, in_session=is_in_session(request))
    if kind in ("session_lost", "session_refused") or (
        kind == "not_found" and is_of_sessions(request)
    ):
        body = b""  # with sessions, the status alone says what happened
    return _error(request, response, kind, body=body)


def _target_on_origin(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Where a request is to be sent instead, if that is the same server; None if it is not."""
    if response.status_code not in (307, 308):
        return None
    try:
        target = request.url.join(response.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError):
        return None
    same = (target.scheme, target.host, target.port) == (
        request.url.scheme,
        request.url.host,
        request.url.port,
    )
    return target if same and not target.userinfo else None


async def _read(response: httpx2.Response) -> bytes:
    # Straight from the bounded stream: nothing is compressed, see outbound.py.
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    counter, chunks = PartCounter(), []
    async for chunk in stream:
        counter.feed(chunk)
        chunks.append(chunk)
    return b"".join(chunks)


class _CountedStream(httpx2.AsyncByteStream):
    """An event stream that breaks off at an event with too many parts, and has no halves of characters."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        counter, mender = PartCounter(), HalfMender()
        async for chunk in self._inner:
            counter.feed_lines(chunk)
            yield mender.feed(chunk)
        yield mender.end()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_rpc(body: bytes) -> bool:
    # Only the outermost brace: the SDK parses the rest, and its parse errors stay within the one request.
    return body.lstrip()[:1] == b"{"


def _kept_headers(response: httpx2.Response) -> dict[str, str]:
    kept = {"content-type": "application/json"}
    if "mcp-session-id" in response.headers:
        kept["mcp-session-id"] = response.headers["mcp-session-id"]
    return kept


def _failure(request: httpx2.Request, error: Exception) -> httpx2.Response:
    data = failure_data(error)
    return _build(request, _TRANSPORT_FAILED_STATUS, data)


def _error(
    request: httpx2.Request,
    response: httpx2.Response,
    kind: str,
    *,
    body: bytes = b"",
    status: int | None = None,
) -> httpx2.Response:
    data = error_data(kind, response)
    rpc = _rpc_error(body)
    if rpc is not None:
        # The server's own error keeps its code and words, which the SDK's negotiation depends on.
        foreign = rpc.get("data")
        merged = {**foreign, **data} if isinstance(foreign, dict) else data
        return _build(
            request,
            status or response.status_code,
            merged,
            code=rpc["code"],
            message=rpc["message"],
        )
    return _build(request, status or response.status_code, data)


def _rpc_error(body: bytes) -> dict[str, Any] | None:
    if not body or len(body) > _MAX_ERROR_BODY:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = value.get("error") if isinstance(value, dict) else None
    if (
        not isinstance(error, dict)
        or not isinstance(error.get("code"), int)
        or isinstance(error.get("code"), bool)
    ):
        return None
    return {
        "code": error["code"],
        # As long as the body may be: it is cut where it is kept, once it is masked.
        "message": str(error.get("message", "")),
        "data": error.get("data"),
    }


def _build(
    request: httpx2.Request,
    status: int,
    data: dict[str, Any],
    *,
    code: int = GUARD_ERROR_CODE,
    message: str = "The request failed.",
) -> httpx2.Response:
    # A redirect status would make the SDK look for a location.
    status = status if status >= 400 else 502
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": code, "message": message, "data": data},
    }
    return httpx2.Response(status, json=body, request=request)
