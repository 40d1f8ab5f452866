"""What it takes to open and keep a connection, as values without any row. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from mcp_servers.client.transports.targets import HttpSpec, StdioSpec
from mcp_servers.client.values import Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.secret_memory import HeldSecrets

ServerKey: TypeAlias = "tuple[UUID, UUID]"
"""Workspace and server."""
ConnectionKey: TypeAlias = "tuple[UUID, UUID, str]"
"""Workspace, server and principal: nothing is shared across any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSpec:
    """All that is needed to open and keep one connection."""

    workspace_id: UUID
    server_id: UUID
    principal: str
    """Whose credentials it carries: "workspace" or "user:<id>". Connections are never shared across principals."""
    server_name: str
    target: HttpSpec | StdioSpec
    fingerprint: str
    """Changes with everything that makes an open connection stale."""
    protocol: Protocol = Protocol.AUTO
    connect_seconds: float = 15.0
    idle_seconds: float = 300.0
    max_concurrent_calls: int = 8
    max_queued_calls: int = 64
    """How many calls may wait for a slot, besides those that have one."""
    max_attempts: int = 5
    """Failures in a row after which the server is left alone until a check or a person asks for it."""
    allows_elicitation: bool = True
    """The server may ask people; it is told so when it is connected."""
    allows_sampling: bool = False
    """The server may ask for the model; it is told so when it is connected."""
    roots: tuple[tuple[str, str], ...] = ()
    """URI and name of each folder that the server is told it may work in."""
    watched: tuple[str, ...] = ()
    """URIs of resources whose changes are to be heard of; may change while the connection is open."""
    log_level: str = ""
    """From which level on the server's log messages are wanted; none: not at all."""
    needs_sign_in: bool = False
    """Somebody has to sign in to the server first; until then nothing is sent."""
    is_draft: bool = False
    """Somebody tries it before it is added, so it has no settings yet."""
    secrets: HeldSecrets | None = field(default=None, repr=False, compare=False)
    """What it connects with: masked for as long as a connection has it."""

    @property
    def key(self) -> ConnectionKey:
        """Which connection of the pool this is."""
        return (self.workspace_id, self.server_id, self.principal)

    @property
    def server_key(self) -> ServerKey:
        """Which server this is, whoever's credentials are used."""
        return (self.workspace_id, self.server_id)

    @property
    def has_credentials(self) -> bool:
        """Something is sent, in headers or in its address, that a server could refuse."""
        target = self.target
        if isinstance(target, StdioSpec) or target.headers or target.auth is not None:
            return True
        return self.secrets is not None and not self.secrets.is_empty()

    @property
    def is_stdio(self) -> bool:
        """The server is a program that runs here."""
        return isinstance(self.target, StdioSpec)
