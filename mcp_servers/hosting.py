"""Servers that a provider runs: their address is the provider's word and a secret, and stands in no server's row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from mcp_servers.models import McpServer
    from mcp_servers.services.drafts import ServerDraft

KLAVIS: Final = "klavis"

_LABELS: Final = {KLAVIS: "Klavis"}


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


def label_of(server: McpServer) -> str:
    """Whose it is and what it was when it was made, without its address."""
    instance = getattr(server, "klavis", None)
    provider = _LABELS.get(server.hosted_by, server.hosted_by)
    return f"{provider}: {instance.title}" if instance is not None else provider
