"""Where connections tell the rest of the app something; set once at start, so that starting imports no SDK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

Direction: TypeAlias = Literal["sent", "received", "event"]
Kind: TypeAlias = Literal["request", "response", "notification", "error", "event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """One JSON-RPC message, or one event of a connection. Not redacted: whoever stores it does that."""

    workspace_id: UUID
    server_id: UUID
    principal: str
    connection: str
    """Which connection of this server, by a short name."""
    at: datetime
    direction: Direction
    kind: Kind
    method: str = ""
    """Of a response: the method it answers."""
    rpc_id: str = ""
    call_id: UUID | None = None
    """The gate's call that it belongs to, if that is known."""
    user_id: UUID | None = None
    body: dict[str, Any] | None = None
    """The message as JSON; what is too long in it is cut and marked."""
    text: str = ""
    """An event, an error or a line of the server's log, in plain words."""
    size: int = 0
    """Bytes of the message as compact JSON; for a cut one an estimate from what was looked at, at least."""
    duration_ms: int | None = None
    """Of a response: since its request was sent."""
    is_check: bool = False
    """It belongs to a regular check that went well."""


def _ignore(*_: object) -> None:
    pass


class Hooks:
    """The callbacks. Each runs in a thread of its own and may use the database."""

    tools_changed: Callable[[UUID], None] = staticmethod(_ignore)
    """A server says that its tools changed; at most once per second and server. So do the next two."""
    prompts_changed: Callable[[UUID], None] = staticmethod(_ignore)
    resources_changed: Callable[[UUID], None] = staticmethod(_ignore)
    resource_updated: Callable[[UUID, UUID, str], None] = staticmethod(_ignore)
    """Workspace, server, URI: the content of a watched resource changed; at most once per second and resource."""
    elicitation_completed: Callable[[UUID, str], None] = staticmethod(_ignore)
    """Server and elicitation id: what a person was sent to a URL for is done."""
    traced: Callable[[Sequence[TraceRecord]], None] | None = None
    """Messages and events of all connections, a batch about twice a second; None: nothing is kept."""


hooks = Hooks()
