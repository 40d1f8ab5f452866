"""What the log is told of sign-ins at the provider: whose account, and at which service; never a key or an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audit.services import EntryDraft, Ref, record
from mcp_servers.klavis.models import HOST
from mcp_servers.oauth.grants import WORKSPACE_PRINCIPAL

if TYPE_CHECKING:
    from collections.abc import Collection

    from audit.actions import Action
    from mcp_servers.klavis.models import KlavisInstance
    from workspaces.actors import Actor


def record_sign_in(
    instance: KlavisInstance,
    action: Action,
    actor: Actor,
    *,
    services: Collection[str] = (),
    **details: str,
) -> None:
    """Write an entry about the account that a hosted service is used with.

    Args:
        services: of several behind one server, those that it is about.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    user_id = instance.user_id
    facts: dict[str, object] = {
        "provider": HOST,
        "account": WORKSPACE_PRINCIPAL if user_id is None else f"user:{user_id}",
        "services": sorted(services) or [instance.server_name],
        **details,
    }
    record(
        EntryDraft(
            action=action,
            actor=actor,
            workspace_id=instance.workspace_id,
            server=Ref(id=instance.server_id, name=instance.title),
            details=facts,
        )
    )
