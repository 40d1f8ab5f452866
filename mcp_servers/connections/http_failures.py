"""What went wrong on HTTP, in a few kinds, as the data of a JSON-RPC error of our own. Pure."""

from __future__ import annotations

from typing import Any, Final

import httpx2
from mcp import MCPError

from workspaces.outbound import TooLarge, Withheld

GUARD_ERROR_CODE: Final = -32010
"""In the range that JSON-RPC leaves to implementations. Decide on data["kind"], since servers use such codes too."""

_MOST_TOLD: Final = 4096
_TOLD_HEADERS: Final = ("www-authenticate", "retry-after")


def kind_of_status(status: int, body: bytes = b"") -> str:
    """What a refusing status means."""
    if 300 <= status < 400:
        return "redirect"
    if status in (401, 403):
        return "auth_required"
    if status == 404 or (status == 400 and b"session" in body[:2048].lower()):
        return "session_lost"
    if status == 429:
        return "rate_limited"
    return "http_status"


def kind_of_error(error: BaseException) -> str:
    """What an exception of the HTTP library means."""
    if isinstance(error, TooLarge):
        return "too_large"
    if isinstance(error, Withheld):
        return "issuer_away"
    if isinstance(
        error,
        (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.PoolTimeout,
            httpx2.UnsupportedProtocol,
        ),
    ):
        return "unreachable"  # certainly not sent
    if isinstance(error, httpx2.TimeoutException):
        return "timeout"
    if isinstance(error, httpx2.DecodingError):
        return "not_mcp"
    return "broken"  # perhaps sent, perhaps received


def error_data(kind: str, response: httpx2.Response) -> dict[str, Any]:
    """The data that tells of a refused request."""
    data: dict[str, Any] = {"kind": kind, "http_status": response.status_code}
    for name in _TOLD_HEADERS:
        if name in response.headers:
            data[name.replace("-", "_")] = response.headers[name][:_MOST_TOLD]
    return data


def refused(response: httpx2.Response, kind: str | None = None) -> MCPError:
    """The error for a stream or a socket that was not opened."""
    data = error_data(kind or kind_of_status(response.status_code), response)
    return MCPError(GUARD_ERROR_CODE, "The request failed.", data)


def failed(kind: str) -> MCPError:
    """The error for what went wrong without any answer."""
    return MCPError(GUARD_ERROR_CODE, "The request failed.", {"kind": kind, "http_status": None})
