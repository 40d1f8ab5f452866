"""Foreign exceptions into our own: why a connection or a call failed, in a few kinds and in plain words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import httpx2
import pydantic
from django.utils.translation import gettext_noop as _

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.challenges import bearer_parameters
from mcp_servers.client.errors import (
    ASKS_BACK,
    NOTHING_ENTERED,
    AuthenticationRequired,
    ConnectionFailed,
    ConnectTimedOut,
    McpServersError,
    NetworkNotAllowed,
    NotAnMcpServer,
)
from mcp_servers.client.hidden_text import strip_hidden
from mcp_servers.client.sdk import mcp
from mcp_servers.client.transports.child import CANNOT_RUN, CANNOT_RUN_WORDS, SIGNALS_FROM
from mcp_servers.client.transports.http_failures import GUARD_ERROR_CODE, is_ours
from mcp_servers.client.transports.stdio import FLOODED
from mcp_servers.client.transports.targets import LONGEST_CONNECT_SECONDS, StdioSpec
from workspaces.outbound import NetworkRefused, RequestWithheld, Unreachable, why_unreachable
from workspaces.redaction import redact_known
from workspaces.words.waiting_times import duration_in_words

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.client.transports.stdio import OpenTransport, StdioTransport

CONNECTION_CLOSED: Final = -32000
_INVALID_REQUEST: Final = -32600
_LAST_SIGNAL: Final = 64
_PARSE_ERROR: Final = -32700

_WORDS: Final = {
    "unreachable": _("Trellis could not reach the server."),
    "timeout": _("The server did not answer in time."),
    "broken": _("The connection to the server was lost."),
    "auth_required": _("The server refused the credentials."),
    "issuer_away": _(
        "The server's sign-in service can't be reached right now, so nothing was sent."
    ),
    "network_refused": _("Trellis is not allowed to connect to this server's network."),
    "session_lost": _("The server no longer knows this session."),
    "session_refused": _("The server refused the request within its session."),
    "closed": _("The connection was closed before anything was sent."),
    "rate_limited": _("The server asks for fewer requests. Please try again later."),
    "redirect": _("The server redirects to another address. Please enter the final URL."),
    "not_mcp": _("The address answers, but not with MCP."),
    "too_large": _("The server's answer is too large."),
    "unreadable": _("The server's answer does not follow the protocol."),
    "foreign_endpoint": _(
        "The server wants messages sent to another origin, which is not allowed."
    ),
    "asks_back": ASKS_BACK,
    "busy": _("The server is busy with another call. Please try again in a moment."),
    "input_declined": _("The tool's question was declined."),
    "task_gone": _("The server no longer knows this task."),
    "task_failed": _("The task failed at the server."),
    "task_cancelled": _("The task was cancelled at the server."),
}

NOT_CARRIED_OUT: Final = frozenset(
    {
        "unreachable",
        "auth_required",
        "issuer_away",
        "network_refused",
        "closed",
        "rate_limited",
        "busy",
        "input_declined",
    }
)
"""Kinds of failed calls of which it is certain that nothing was done."""


_MOST_WORDS: Final = 300
"""Of what a server answered."""
_PLAIN: Final = ("http", "ws")
_BY_STATUS: Final = frozenset({"http_status", "not_found"})


class CallFailed(McpServersError):
    """A call brought no result. Internal: the gate turns it into an outcome.

    Its kinds are the keys of the words above; see NOT_CARRIED_OUT for what they say about the call.
    """

    code = "call_failed"
    status = 502

    def __init__(
        self,
        kind: str,
        message: str | None = None,
        *,
        http_status: int | None = None,
        challenge: str = "",
    ) -> None:
        super().__init__(
            message or _WORDS[kind], details={"kind": kind, "http_status": http_status}
        )
        self.kind = kind
        self.http_status = http_status
        self.challenge = challenge
        """What the server said about signing in: its WWW-Authenticate header, for our eyes only."""


class RpcError(McpServersError):
    """The server answered the call with a JSON-RPC error of its own."""

    code = "rpc_error"
    status = 502

    def __init__(self, message: str, *, rpc_code: int, data: object = None) -> None:
        super().__init__(message, details={"rpc_code": rpc_code})
        self.rpc_code = rpc_code
        self.data = data
        """What the server added; unchecked, and for nobody's eyes as it is."""

    def without_secrets(self, workspace_id: UUID) -> RpcError:
        """The same with the server's words masked."""
        masked = redact_known(self.message, workspace_id=workspace_id)
        return RpcError(masked, rpc_code=self.rpc_code, data=self.data)


def leaf_of(error: BaseException) -> BaseException:
    """The first real exception inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def connect_failure(
    error: BaseException, *, spec: ConnectionSpec, transport: OpenTransport
) -> ConnectionFailed:
    """Why a connection could not be opened, with what whoever manages the server can do about it."""
    program, first = transport.stdio, transport.ended_first
    if isinstance(leaf_of(error), TimeoutError):
        if first is None:
            return _too_slow(spec, program)
        error, program = first
    failure = _connect_failure(error, is_stdio=spec.is_stdio)
    if isinstance(failure, AuthenticationRequired) and not spec.has_credentials:
        failure.message = NOTHING_ENTERED
        failure.advice = (
            _("Choose how to sign in under “Authentication”.")
            if spec.is_draft
            else _("Choose how to sign in under “Authentication” in its settings.")
        )
    if not isinstance(spec.target, StdioSpec):
        if failure.details.get("kind") == "unreachable":
            failure.advice = _advice_to_reach(spec.target.endpoint.port, failure.details.get("why"))
        elif (words := _words_of(error, failure, spec)) is not None:
            message = str(redact_known(words, workspace_id=spec.workspace_id))
            failure.advice = in_words_of_server(message)
        elif spec.target.endpoint.scheme in _PLAIN and _looks_like_tls(failure):
            failure.advice = _(
                "If it expects encrypted connections on its port %(port)s, its URL has to begin with https:// or wss://."
            ) % {"port": spec.target.endpoint.port}
    if failure.details.get("kind") == "ended" and program is not None:
        return _program_ended(failure, program)
    if spec.is_stdio and not failure.advice:
        failure.advice = _("Its arguments may start something else than the MCP server.")
    return failure


def words_of_server(error: BaseException) -> str | None:
    """The message of a JSON-RPC error that the server itself made; None: it made none."""
    leaf = leaf_of(error)
    return leaf.message if isinstance(leaf, mcp.MCPError) and _kind_of(leaf) is None else None


def _words_of(error: BaseException, failure: ConnectionFailed, spec: ConnectionSpec) -> str | None:
    """The server's own reason, also why it refused the credentials: RFC 6750, section 3. None: it gave none."""
    if isinstance(failure, AuthenticationRequired) and spec.has_credentials:
        return bearer_parameters(failure.challenge).get("error_description")
    return words_of_server(error)


def in_words_of_server(message: str) -> str:
    """What the server answered, for those who manage it; nothing if those are no words."""
    words = " ".join(strip_hidden(clean_text(message[:_MOST_WORDS])).split())
    return _("It answered: %(words)s") % {"words": words} if words else ""


def _looks_like_tls(failure: ConnectionFailed) -> bool:
    """Whether this is how ports for TLS answer plain text: they hang up, or some web servers say 400."""
    return failure.details.get("kind") == "broken" or failure.details.get("http_status") == 400


def _advice_to_reach(port: int, why: object) -> str:
    """What to do, as far as it is known what is wrong; the host is not named, for of some servers it is a secret."""
    if why == Unreachable.NO_NAME:
        return _("The name of its host could not be looked up. Check how the URL is spelled.")
    if why == Unreachable.NOBODY_LISTENS:
        message = _(
            "Nothing answers on its port %(port)s. Check the port, and whether the server runs."
        )
    elif why == Unreachable.CERTIFICATE:
        return _(
            "Its certificate is not valid: it is not trusted here, has expired, or belongs to another name."
        )
    elif why == Unreachable.NO_TLS:
        message = _(
            "There is no encrypted connection on its port %(port)s. Check the port, and how the URL begins."
        )
    elif why == Unreachable.TLS_UNANSWERED:
        message = _(
            "Its port %(port)s takes connections, but does not answer encrypted ones. Check the port, and how the URL begins."
        )
    else:
        return ""
    return message % {"port": port}


def _too_slow(spec: ConnectionSpec, program: StdioTransport | None) -> ConnectTimedOut:
    """It did not open within the time that it had, and where it gets more."""
    failure = ConnectTimedOut(_WORDS["timeout"], details={"kind": "timeout"})
    is_most = spec.connect_seconds >= LONGEST_CONNECT_SECONDS
    parts = [_("It had %(seconds)s, which is the most.") if is_most else _("It had %(seconds)s.")]
    if program is not None and program.stderr.stray_lines:
        parts.append(
            _("It wrote only text that is not MCP, so its arguments may start something else.")
        )
    elif is_most and spec.is_stdio:
        parts.append(_("If Trellis fetches it first, have it installed on this machine."))
    if not is_most and spec.is_draft:
        parts.append(
            _("If it only starts slowly, add it. Its settings then have “Time to connect”.")
        )
    elif not is_most:
        parts.append(
            _("If it only starts slowly, give it more under “Time to connect” in its settings.")
        )
    message = " ".join(parts)
    failure.advice = message % {"seconds": duration_in_words(spec.connect_seconds)}
    return failure


def _program_ended(failure: ConnectionFailed, program: StdioTransport) -> ConnectionFailed:
    output, code = program.stderr.text(), program.exit_code
    if code == CANNOT_RUN and output.startswith(CANNOT_RUN_WORDS):
        missing = ConnectionFailed(
            _("Trellis could not start the program."), details={"kind": "not_started"}
        )
        missing.advice = _(
            "The platform's owner has to install it on this machine, or to correct its command in the program catalogue."
        )
        return missing
    if program.failure == FLOODED:
        failure.message = _("The program writes text that is not MCP, and does not stop.")
        failure.advice = _("Its arguments may start something else than the MCP server.")
    elif code is not None and SIGNALS_FROM < code <= SIGNALS_FROM + _LAST_SIGNAL:
        failure.advice = _("It was ended by signal %(number)s.") % {"number": code - SIGNALS_FROM}
    elif output.strip():
        failure.advice = _(
            "Often a variable, a path or an argument is missing or wrong. See what the program said."
        )
    else:
        failure.advice = _("It wrote nothing about why.")
        if code is not None:  # it could be collected
            failure.advice += " " + _("Its exit code was %(code)s.") % {"code": code}
    return failure


def _connect_failure(error: BaseException, *, is_stdio: bool) -> ConnectionFailed:
    leaf = leaf_of(error)
    if isinstance(leaf, ConnectionFailed):
        return leaf
    if isinstance(leaf, asyncio.CancelledError):
        return ConnectionFailed(
            _("The connection was closed before it was open."), details={"kind": "closed"}
        )
    if is_stdio:
        if isinstance(leaf, mcp.MCPError) and leaf.code != CONNECTION_CLOSED:
            return NotAnMcpServer(_WORDS["not_mcp"], details={"rpc_code": leaf.code})
        return ConnectionFailed(
            _("The program ended before it answered in MCP."), details={"kind": "ended"}
        )
    if isinstance(leaf, mcp.MCPError):
        return _refused_by(leaf)
    if isinstance(leaf, NetworkRefused):
        return NetworkNotAllowed(_WORDS["network_refused"], details={"kind": "network_refused"})
    if isinstance(leaf, httpx2.TransportError):
        if isinstance(leaf, RequestWithheld):
            return ConnectionFailed(_WORDS["issuer_away"], details={"kind": "issuer_away"})
        why = why_unreachable(leaf)
        return ConnectionFailed(
            _WORDS["unreachable"], details={"kind": "unreachable", "why": str(why)}
        )
    return NotAnMcpServer(_WORDS["not_mcp"], details={"error": type(leaf).__name__})


def _refused_by(leaf: mcp.MCPError) -> ConnectionFailed:
    """Why a connection was not opened, by what the transport or the server said."""
    kind, status = _kind_of(leaf), _data_of(leaf).get("http_status")
    details: dict[str, object] = {
        "kind": kind,
        "http_status": status,
        "rpc_code": leaf.code,
    }
    if kind == "auth_required":
        refused = AuthenticationRequired(_WORDS[kind], details=details)
        refused.challenge = _challenge_of(leaf)
        return refused
    if status == 404:
        return NotAnMcpServer(
            _("Nothing that speaks MCP is at this URL (HTTP %(status)s).") % {"status": status},
            details=details,
        )
    if kind == "network_refused":
        return NetworkNotAllowed(_WORDS[kind], details=details)
    if kind == "http_status":
        return ConnectionFailed(
            _("The server answered with HTTP %(status)s.") % {"status": status}, details=details
        )
    if kind in ("not_mcp", "redirect", "too_large", "foreign_endpoint"):
        return NotAnMcpServer(_WORDS[kind], details=details)
    if kind == "unreachable":
        details["why"] = _data_of(leaf).get("why")
    if kind in ("unreachable", "timeout", "broken", "rate_limited", "issuer_away"):
        return ConnectionFailed(_WORDS[kind], details=details)
    return NotAnMcpServer(_("The server refused the protocol's first step."), details=details)


def call_failure(error: BaseException) -> CallFailed | RpcError | None:
    """Why a request on an open connection brought no result; None for an exception that is not about it."""
    leaf = leaf_of(error)
    if isinstance(leaf, (CallFailed, RpcError)):
        return leaf
    if isinstance(leaf, pydantic.ValidationError):
        return CallFailed("unreadable")
    if isinstance(leaf, NetworkRefused):
        return CallFailed("network_refused")
    if isinstance(leaf, httpx2.TransportError):
        return CallFailed("issuer_away" if isinstance(leaf, RequestWithheld) else "broken")
    if isinstance(leaf, mcp.MCPError):
        kind = _kind_of(leaf)
        if kind is None:
            return RpcError(leaf.message, rpc_code=leaf.code, data=leaf.error.data)
        status = _data_of(leaf).get("http_status")
        message = (
            _("The server answered with HTTP %(status)s.") % {"status": status}
            if kind in _BY_STATUS
            else None
        )
        return CallFailed(kind, message, http_status=status, challenge=_challenge_of(leaf))
    return None


def _data_of(error: mcp.MCPError) -> dict[str, Any]:
    data = error.error.data
    return data if isinstance(data, dict) else {}


def _challenge_of(error: mcp.MCPError) -> str:
    challenge = _data_of(error).get("www_authenticate")
    return challenge if isinstance(challenge, str) else ""


def _kind_of(error: mcp.MCPError) -> str | None:
    """Ours from the guard, or one of the few that the SDK itself makes up; None for the server's own errors."""
    data, message = _data_of(error), error.message
    if error.code == _INVALID_REQUEST and "no back-channel" in message:
        return "asks_back"  # whatever the status it came with
    if is_ours(data):
        if error.code != GUARD_ERROR_CODE and data["kind"] in _BY_STATUS:
            return None  # an ordinary JSON-RPC error that came with a status
        return str(data["kind"])
    if error.code == CONNECTION_CLOSED and message == "Connection closed":
        return "broken"
    if message.startswith("SSE stream failed"):
        return "too_large"
    if message.startswith(("SSE stream ended", "server answered a request with 202")):
        return "broken"
    if error.code == _PARSE_ERROR and message.startswith("Failed to parse"):
        return "unreadable"
    return None
