"""The SDK's handlers, which are written for another framework, in a view of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.http import HttpResponse
from starlette.requests import Request

from mcp_servers.client.connections.runtime import run_sync

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Message, Scope

Handler = Callable[[Request], Awaitable["Response"]]
SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """What a handler answers."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def as_response(self) -> HttpResponse:
        """The same, as our framework has it."""
        response = HttpResponse(self.body, status=self.status)
        for name, value in self.headers.items():
            if name.lower() not in ("content-length", "location"):
                response[name] = value
        return response


def handle_query(handler: Handler, params: Mapping[str, str]) -> HandlerResponse:
    """Have a handler answer a request whose parameters stand in its address."""
    return _handle(handler, "GET", urlencode(params).encode(), b"", {})


def handle_form(handler: Handler, params: Mapping[str, str]) -> HandlerResponse:
    """Have a handler answer a form."""
    kind = "application/x-www-form-urlencoded"
    return _handle(handler, "POST", b"", urlencode(params).encode(), {"content-type": kind})


def handle_json(handler: Handler, body: bytes) -> HandlerResponse:
    """Have a handler answer a JSON text."""
    return _handle(handler, "POST", b"", body, {"content-type": "application/json"})


def _handle(
    handler: Handler, method: str, query: bytes, body: bytes, headers: Mapping[str, str]
) -> HandlerResponse:
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "https",
        "method": method,
        "path": "/",
        "raw_path": b"/",
        "query_string": query,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def run() -> HandlerResponse:
        answer = await handler(Request(scope, receive))
        return HandlerResponse(answer.status_code, dict(answer.headers), bytes(answer.body))

    return run_sync(run(), SECONDS)
