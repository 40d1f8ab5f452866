"""What went wrong on HTTP, in a few kinds, as the data of a JSON-RPC error of our own. Pure."""

from __future__ import annotations

import secrets
from typing import Any, Final

import httpx2

from mcp_servers.client.sdk import mcp, mcp_types
from workspaces.outbound import NetworkRefused, RequestWithheld, ResponseTooLarge, why_unreachable

GUARD_ERROR_CODE: Final = -32010
"""In the range that JSON-RPC leaves to implementations. Servers use such codes too: ask is_ours()."""

_MARK: Final = "trellis"
_MARKED_AS: Final = secrets.token_hex(16)
"""New in each process and never shown, so that no server can pass its own words off as ours."""
_MOST_TOLD: Final = 4096
_TOLD_HEADERS: Final = ("www-authenticate", "retry-after")


def kind_of_status(status: int, *, in_session: bool = False) -> str:
    """What a refusing status means; the text that comes with it never counts.

    Args:
        in_session: the request carried a session id.
    Source: MCP 2025-11-25, "Transports": Session Management, for 404.
    """
    if 300 <= status < 400:
        return "redirect"
    if status in (401, 403):
        return "auth_required"
    if status == 404:
        return "session_lost" if in_session else "not_found"
    if status == 400 and in_session:
        return (
            "session_refused"  # so some servers say that they have forgotten it, but not only that
        )
    if status == 429:
        return "rate_limited"
    return "http_status"


def kind_of_error(error: BaseException) -> str:
    """What an exception of the HTTP library means."""
    if isinstance(error, ResponseTooLarge):
        return "too_large"
    if isinstance(error, RequestWithheld):
        return "issuer_away"
    if isinstance(error, NetworkRefused):
        return "network_refused"
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


def is_in_session(request: httpx2.Request) -> bool:
    """Whether a request carries a session id."""
    return "mcp-session-id" in request.headers


def is_of_sessions(request: httpx2.Request) -> bool:
    """Whether a request is made under a revision with sessions, after the handshake."""
    version = request.headers.get("mcp-protocol-version")
    return version is not None and version not in mcp_types.version.MODERN_PROTOCOL_VERSIONS


def fault_data(kind: str, status: int | None = None) -> dict[str, Any]:
    """The data of an error that we made ourselves."""
    return {"kind": kind, "http_status": status, _MARK: _MARKED_AS}


def failure_data(error: BaseException) -> dict[str, Any]:
    """The data that tells of an exception of the HTTP library."""
    data = fault_data(kind_of_error(error))
    if data["kind"] == "unreachable":
        data["why"] = str(why_unreachable(error))
    return data


def is_ours(data: object) -> bool:
    """Whether an error's data was made by us, whatever a server says."""
    return isinstance(data, dict) and data.get(_MARK) == _MARKED_AS


def without_mark(data: object) -> object:
    """The data of an error as it may be shown."""
    if not is_ours(data):
        return data
    assert isinstance(data, dict)
    return {name: value for name, value in data.items() if name != _MARK}


def error_data(kind: str, response: httpx2.Response) -> dict[str, Any]:
    """The data that tells of a refused request."""
    data = fault_data(kind, response.status_code)
    for name in _TOLD_HEADERS:
        if name in response.headers:
            data[name.replace("-", "_")] = response.headers[name][:_MOST_TOLD]
    return data


def refused(response: httpx2.Response, kind: str | None = None) -> mcp.MCPError:
    """The error for a stream or a socket that was not opened."""
    data = error_data(kind or kind_of_status(response.status_code), response)
    return mcp.MCPError(GUARD_ERROR_CODE, "The request failed.", data)


def failed(kind: str) -> mcp.MCPError:
    """The error for what went wrong without any answer."""
    return mcp.MCPError(GUARD_ERROR_CODE, "The request failed.", fault_data(kind))
