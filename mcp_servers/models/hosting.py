"""Servers that a provider runs: their address is the provider's word and a secret, and stands in no server's row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_servers.models import McpServer
    from mcp_servers.registry.services.drafts import ServerDraft

KLAVIS: Final = "klavis"

_LABELS: Final = {KLAVIS: "Klavis"}


class Host(Protocol):
    """What a provider is asked about the servers that it runs."""

    def waits_for_sign_in(self, server: McpServer) -> bool:
        """Whether somebody has to sign in at the provider before the server can be used."""

    def note_lost_sign_in(self, server: McpServer) -> None:
        """The server refused a call for want of an account: from now on it waits for a sign-in."""

    def sign_in_path(self, server: McpServer) -> str | None:
        """The page on which people sign in; None if the provider no longer runs the server."""


_hosts: dict[str, Host] = {}


def register_host(name: str, host: Host) -> None:
    """Make a provider known, under the name that stands in ``McpServer.hosted_by``. Called once at start."""
    _hosts[name] = host


def waits_for_sign_in(server: McpServer) -> bool:
    """Whether a hosted server cannot be used before somebody signs in; False for every other server."""
    host = _hosts.get(server.hosted_by)
    return host is not None and host.waits_for_sign_in(server)


def note_lost_sign_in(server: McpServer) -> None:
    """Tell a hosted server's provider that it refused a call for want of an account."""
    if (host := _hosts.get(server.hosted_by)) is not None:
        host.note_lost_sign_in(server)


def sign_in_path(server: McpServer) -> str | None:
    """Where people sign in to a hosted server."""
    host = _hosts.get(server.hosted_by)
    return host.sign_in_path(server) if host is not None else None


def check_values(server: McpServer) -> None:
    """Check a hosted server's columns.

    Raises:
        InvalidInput: somebody wants to say where it is, how it is reached or how one signs in to it.
    """
    if server.url:
        raise InvalidInput(fields={"url": ["The provider says where this server is."]})
    if server.program is not None or server.parameters:
        raise InvalidInput(fields={"program": ["Only a server that is a program has one."]})
    if server.transport != "streamable_http":
        raise InvalidInput(fields={"transport": ["The provider says how this server is reached."]})
    if server.auth_type != "none" or server.headers or server.auth_config:
        raise InvalidInput(fields={"auth_type": ["The provider keeps this server's sign-ins."]})


def refuse_target(draft: ServerDraft) -> None:
    """Make sure that a draft says nothing of where a hosted server is, and how one signs in to it.

    Raises:
        InvalidInput: it does.
    """
    given = (draft.url, draft.program, draft.parameters, draft.headers, draft.env, draft.auth)
    is_plain = draft.transport in (None, "streamable_http") and draft.auth_type in (None, "none")
    if any(given) or not is_plain:
        raise InvalidInput("The provider says where this server is, and keeps its sign-ins.")


def provider_of(server: McpServer) -> str:
    """The name of the provider that runs a server."""
    return _LABELS.get(server.hosted_by, server.hosted_by)


def label_of(server: McpServer) -> str:
    """Whose it is and what it was when it was made, without its address."""
    instance = getattr(server, "klavis", None)
    provider = provider_of(server)
    return f"{provider}: {instance.title}" if instance is not None else provider
