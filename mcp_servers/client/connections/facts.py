"""What is known of a server and of a connection to it, as values for everybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from uuid import UUID

RawItem: TypeAlias = "dict[str, Any]"
"""One tool, resource, template or prompt as on the wire; not checked in any way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server said about itself when the connection was opened, and how it was reached."""

    protocol_revision: str
    transport: str
    """stdio, streamable_http, sse or websocket: what works, where the choice was left to us."""
    was_negotiated: bool
    """The revision was found out with the server, not set for it."""
    name: str
    title: str = ""
    version: str
    instructions: str
    capabilities: dict[str, Any]
    icons: tuple[str, ...] = ()
    """Where its icons are, or the icons themselves; the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """What a server offers, as it sent it, all pages."""

    facts: ServerFacts
    tools: tuple[RawItem, ...]
    resources: tuple[RawItem, ...] = ()
    resource_templates: tuple[RawItem, ...] = ()
    prompts: tuple[RawItem, ...] = ()
    warning: str = ""
    """Why the tools may be incomplete; empty if they are whole."""
    warnings: tuple[str, ...] = ()
    """The same for all the lists, the tools' first."""
    unread: frozenset[str] = frozenset()
    """Which of "resources", "resource_templates" and "prompts" could not be read; what is known of them still holds."""
    ttl_seconds: float | None = None
    """How long the server says its lists hold, the shortest of them; None: it does not say (older revisions)."""
    cache_scope: Literal["public", "private"] = "private"
    """Whether the lists are the same for every principal; only if the server says so of all of them."""
    latency_ms: int = 0


class ConnectionState(StrEnum):
    """Where a connection is in its life."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    CLOSING = "closing"
    """It takes no new requests, and ends with the last that is under way."""
    WAITING = "waiting"
    """It failed, and is tried again in a while."""
    GIVEN_UP = "given_up"
    """It failed too often; a check or a person has to ask for another attempt."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStatus:
    """One connection of this process, for people who look after servers."""

    workspace_id: UUID
    server_id: UUID
    principal: str
    state: ConnectionState
    since: datetime
    in_flight: int = 0
    failures: int = 0
    """In a row."""
    next_attempt_seconds: float | None = None
    """Until the next attempt, where there is one to come."""
    transport: str = ""
    protocol_revision: str = ""
    process_id: int | None = None
    """Of the program, for stdio."""
    capabilities: dict[str, Any] = field(default_factory=dict)
