"""What it takes to open and keep a connection, as values without any row. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mcp_servers.client.transports import AUTO, STDIO
from mcp_servers.client.values import Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from httpx2 import Auth

    from workspaces.outbound import Endpoint
    from workspaces.secret_memory import HeldSecrets

ServerKey: TypeAlias = "tuple[UUID, UUID]"
"""Workspace and server."""
ConnectionKey: TypeAlias = "tuple[UUID, UUID, str]"
"""Workspace, server and principal: nothing is shared across any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSpec:
    """A server behind a URL."""

    endpoint: Endpoint = field(repr=False)
    """Its query, and of a hosted server all of it, may be a secret."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """With the credentials; checked by outbound.check_headers(), apart from Authorization which we build."""
    transport: str = AUTO
    """One of `transports`, or the automatic choice."""
    remembered: str | None = None
    """What the automatic choice found to work last time; it is tried first."""
    auth: Auth | None = field(default=None, repr=False, compare=False)
    """Puts a token on each request, where tokens come and go while a connection is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """What one child may use."""

    memory_bytes: int = 1024 * 2**20
    processes: int = 64
    """Processes and threads, besides those the platform's user already has. Not enforced for root by the kernel."""
    open_files: int = 256
    file_bytes: int = 100 * 2**20
    cpu_seconds: int = 3600
    """Over the child's whole life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioSpec:
    """A program of the catalogue with its arguments filled in."""

    argv: tuple[str, ...]
    """The program's absolute path first."""
    home: Path
    """The child's own folder: its HOME and working directory; made when missing."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Declared names only; nothing of the service's own environment is added."""
    limits: ChildLimits = field(default_factory=ChildLimits)


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
    def is_stdio(self) -> bool:
        """The server is a program that runs here."""
        return isinstance(self.target, StdioSpec)

    @property
    def transport_name(self) -> str:
        """As in the server's row and in the audit log; "auto" until a connection is open."""
        return STDIO if isinstance(self.target, StdioSpec) else self.target.transport
