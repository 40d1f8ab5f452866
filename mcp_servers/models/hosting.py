"""Servers that a provider runs: their address is the provider's word and a secret, and stands in no server's row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.translation import gettext as _

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_servers.client.transports.targets import HttpSpec
    from mcp_servers.models.servers import McpServer


class Host(Protocol):
    """A provider, and what it is asked about the servers that it runs."""

    name: str
    """As in ``McpServer.hosted_by``."""
    label: str
    """For people."""
    home: str
    """Its page, below the page of the servers."""
    about: str
    """What a workspace without an account there misses, in one sentence."""

    def is_set_up(self, workspace_id: UUID) -> bool:
        """Whether the workspace has an account there that works."""

    def target_of(self, server: McpServer) -> HttpSpec:
        """What it takes to reach a server.

        Raises:
            AuthenticationRequired: nobody has signed in at the provider yet.
            InvalidInput: the provider does not run it.
        """

    def fingerprint_of(self, server: McpServer) -> list[object]:
        """Changes with what an open connection was made from; secrets count by their ciphertext."""

    def waits_for_sign_in(self, server: McpServer) -> bool:
        """Whether somebody has to sign in at the provider before the server can be used."""

    def note_lost_sign_in(self, server: McpServer) -> None:
        """The server refused a call for want of an account: from now on it waits for a sign-in."""

    def sign_in_path(self, server: McpServer) -> str | None:
        """The page on which people sign in; None if the provider no longer runs the server."""

    def prepare(self, servers: Sequence[McpServer]) -> None:
        """Read with few queries what titles and pages of these servers take."""

    def title_of(self, server: McpServer) -> str:
        """What the server was when it was made; empty if the provider no longer runs it."""

    def page_of(self, server: McpServer) -> str:
        """The server's page, below the page of the servers; empty if the provider no longer runs it."""


_hosts: dict[str, Host] = {}


def register_host(host: Host) -> None:
    """Make a provider known. Called once at start."""
    _hosts[host.name] = host


def all_hosts() -> list[Host]:
    """Every provider that is known."""
    return list(_hosts.values())


def host_of(server: McpServer) -> Host | None:
    """The provider that runs a server; None: it has an address of its own, or its provider is not known any more."""
    return _hosts.get(server.hosted_by)


def target_of(server: McpServer) -> HttpSpec:
    """What it takes to reach a hosted server, see Host."""
    host = host_of(server)
    if host is None:
        raise InvalidInput(_("The provider of this server is not part of this installation."))
    return host.target_of(server)


def fingerprint_of(server: McpServer) -> list[object] | None:
    """Changes with what connections to a hosted server are made from; None for every other server."""
    host = host_of(server)
    return host.fingerprint_of(server) if host is not None else None


def waits_for_sign_in(server: McpServer) -> bool:
    """Whether a hosted server cannot be used before somebody signs in; False for every other server."""
    host = host_of(server)
    return host is not None and host.waits_for_sign_in(server)


def note_lost_sign_in(server: McpServer) -> None:
    """Tell a hosted server's provider that it refused a call for want of an account."""
    if (host := host_of(server)) is not None:
        host.note_lost_sign_in(server)


def sign_in_path(server: McpServer) -> str | None:
    """Where people sign in to a hosted server."""
    host = host_of(server)
    return host.sign_in_path(server) if host is not None else None


def prepare(servers: Iterable[McpServer]) -> None:
    """Read with few queries what labels and pages of these servers take."""
    hosted = [server for server in servers if server.hosted_by]
    for host in all_hosts():
        host.prepare([server for server in hosted if server.hosted_by == host.name])


def provider_of(server: McpServer) -> str:
    """The name of the provider that runs a server."""
    host = host_of(server)
    return host.label if host is not None else server.hosted_by


def label_of(server: McpServer) -> str:
    """Whose it is and what it was when it was made, without its address."""
    host = host_of(server)
    title = host.title_of(server) if host is not None else ""
    return f"{provider_of(server)}: {title}" if title else provider_of(server)
