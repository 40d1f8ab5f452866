"""What can go wrong with servers and calls, in words for people.

McpServersError(DomainError)
├── ToolNotFound             404  not in this workspace, removed, or switched off
├── CallRefused              403  policy, quarantine or a person said no
├── ApprovalMissing          409  a person has to be asked first
├── OutcomeNotRecorded       503  the server acted, and its end could not be recorded
├── CallTakenOver            409  another process has the call by now
├── InputMissing             409  the server wants an answer from a person first
├── InvalidJson              422  not JSON, or JSON that cannot be carried
├── InvalidArguments         422  do not fit the tool's input schema
├── Busy                     429  no free slot on the server in time; nothing was sent
└── ConnectionFailed         502  the server could not be reached or does not speak MCP
    ├── AuthenticationRequired    it answered 401 or 403
    ├── ConnectTimedOut           no answer in time
    ├── NotAnMcpServer            it answered, but not with MCP
    └── BackingOff                it failed a moment ago; the next try is some seconds away
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_noop as _

from audit.errors import AuditUnavailable
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from audit.actions import RefusedBy
    from mcp_servers.client.decisions import PolicyDecision


ASKS_BACK: Final = _(
    "The tool wants to ask a question while it runs. This server can only do that with sessions."
    " Switch the server's protocol to “with sessions”."
)


class McpServersError(DomainError):
    """Root of this app's errors."""

    code = "mcp_error"


class ToolNotFound(McpServersError):
    """The tool is not in this workspace, was removed, or is switched off."""

    code = "tool_not_found"
    status = 404

    def __init__(
        self,
        message: str = _("This tool is not available."),
        *,
        details: Mapping[str, object] | None = None,
    ):
        super().__init__(message, details=details)


class CallRefused(McpServersError):
    """A rule or a person said no; nothing was sent.

    Args:
        rule: stable id of the rule that decided, as shown in the audit log.
        refused_by: the layer that decided.
    """

    code = "call_refused"
    status = 403

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        refused_by: RefusedBy,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            message,
            details={**(details or {}), "rule": rule, "refused_by": str(refused_by)},
        )
        self.rule = rule
        self.refused_by = refused_by


class ChangesRefused(CallRefused):
    """The call belongs to a trial, and its tool does not just read; nothing was sent."""


class CallTakenOver(McpServersError):
    """The process was held up, and another was given the call; this one writes and sends nothing more."""

    code = "call_taken_over"
    status = 409
    default_message = _("Another process has taken this call over.")


class ApprovalMissing(McpServersError):
    """A person has to approve exactly this call first; nothing was sent."""

    code = "approval_missing"
    status = 409

    def __init__(self, decision: PolicyDecision) -> None:
        super().__init__(decision.reason, details={"rule": decision.rule})
        self.decision = decision


class OutcomeNotRecorded(AuditUnavailable, McpServersError):
    """The call was made, and how it ended could not be recorded, so its result is given to nobody."""

    code = "outcome_not_recorded"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            _(
                "The tool ran, but its end could not be recorded, so its result is withheld."
                " It may have taken effect. Check before you repeat it."
            )
        )


class InputMissing(McpServersError):
    """The server wants an answer from a person before it goes on; the call waits at its checkpoint."""

    code = "input_missing"
    status = 409

    def __init__(self, message: str = _("The server is waiting for an answer.")) -> None:
        super().__init__(message)


class InvalidJson(McpServersError):
    """A text is not JSON, or its value cannot be stored or sent."""

    code = "invalid_json"
    status = 422


class InvalidArguments(McpServersError):
    """The arguments do not fit the tool's input schema; nothing was sent."""

    code = "invalid_arguments"
    status = 422


class Busy(McpServersError):
    """No free slot on the server within the time; nothing was sent."""

    code = "server_busy"
    status = 429


class ConnectionFailed(McpServersError):
    """The server could not be reached, or what answered does not speak MCP.

    The message is a class of failure in plain words, never text of the other side: a tenant must not read the
    banners of internal services through it.
    """

    code = "connection_failed"
    status = 502
    kind = "unreachable"
    advice = ""
    """What somebody who administers the server can do about it."""


class NetworkNotAllowed(ConnectionFailed):
    """The server is in a network that the platform's owner has not allowed."""

    code = "network_not_allowed"
    kind = "network_refused"
    advice = _(
        "The platform's owner can allow the server's network with the setting TRELLIS_ALLOWED_NETWORKS."
    )


NOTHING_ENTERED: Final = _("The server asks for a sign-in or a key, and none is entered for it.")


class AuthenticationRequired(ConnectionFailed):
    """The server wants (other) credentials."""

    code = "auth_required"
    kind = "auth_required"
    challenge = ""
    """What the server said about signing in: its WWW-Authenticate header, for our eyes only."""


class ConnectTimedOut(ConnectionFailed):
    """The server did not answer in time."""

    code = "connect_timeout"
    kind = "timeout"


class NotAnMcpServer(ConnectionFailed):
    """Something answered, but not in the protocol."""

    code = "not_an_mcp_server"
    kind = "protocol"


class BackingOff(ConnectionFailed):
    """The server failed a moment ago and is left alone until the next attempt.

    Args:
        retry_after_seconds: time until a connection is tried again; None: not until somebody asks for it.
    """

    code = "backing_off"
    kind = "backing_off"

    def __init__(self, message: str, *, retry_after_seconds: float | None) -> None:
        wait = round(retry_after_seconds, 1) if retry_after_seconds is not None else None
        super().__init__(message, details={"retry_after_seconds": wait})
        self.retry_after_seconds = retry_after_seconds
