"""What the log and open pages are told of sign-ins; never a token, a code or a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.oauth.grants import WORKSPACE_PRINCIPAL
from workspaces.delivery.announcements import Announcement, announce

if TYPE_CHECKING:
    from mcp_servers.models import McpServer, OAuthGrant
    from workspaces.actors import Actor


def record_sign_in(
    server: McpServer, action: Action, actor: Actor, *, details: Mapping[str, object]
) -> None:
    """Write an entry about somebody signing in to a server.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    record(
        EntryDraft(
            action=action,
            actor=actor,
            workspace_id=server.workspace_id,
            server=Ref(id=server.pk, name=server.name),
            transport=server.known_transport,
            details=dict(details),
        )
    )


def record_grant(
    grant: OAuthGrant, action: Action, actor: Actor, *, details: Mapping[str, object] | None = None
) -> None:
    """Write an entry about a grant, and tell open pages; raises as record_sign_in()."""
    facts: dict[str, object] = {
        "account": WORKSPACE_PRINCIPAL if grant.user_id is None else f"user:{grant.user_id}",
        "issuer": grant.issuer,
        "scope": grant.scope,
        **(details or {}),
    }
    record_sign_in(grant.server, action, actor, details=facts)
    tell_grant(grant.server, grant.user_id)


def tell_grant(server: McpServer, user_id: UUID | None) -> None:
    """Tell open pages that an account was connected, lost or disconnected; of a person's own only that person."""
    announce(
        server.workspace_id,
        Announcement(
            kind="server.changed",
            id=str(server.pk),
            user_id=str(user_id) if user_id is not None else None,
        ),
    )
