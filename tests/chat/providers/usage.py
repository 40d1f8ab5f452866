"""Buds that people ask, and what their questions used."""

from __future__ import annotations

from typing import Any

from chat.models import Bud, Turn
from chat.services.buds import create_bud
from chat.services.conversations import create_conversation
from chat.services.turns import send_message
from tests.factories import Tenant
from workspaces.models import User


def make_bud(tenant: Tenant, name: str) -> Bud:
    return create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={"slug": name.lower(), "name": name},
        provider_id=None,
    )


def ask(tenant: Tenant, bud: Bud, person: User, role: str, **values: Any) -> None:
    """A question that has been answered, with what it used."""
    actor = tenant.actor(role)
    conversation = create_conversation(bud=bud, owner=person, actor=actor)
    sent = send_message(conversation=conversation, client_id="c", text="?", actor=actor)
    Turn.objects.for_workspace(tenant.workspace).filter(pk=sent.turn.pk).update(
        **{"model": "m", "status": "completed", **values}
    )
