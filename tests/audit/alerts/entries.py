"""Entries of a few fields, for what filters find and alerts count."""

from __future__ import annotations

from typing import Any

from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from tests.factories import Tenant
from workspaces.actors import Source


def write(tenant: Tenant, action: Action, *, by: str = "member", **fields: Any) -> AuditEntry:
    for name in ("server", "tool"):
        if name in fields:
            fields[name] = Ref(id=None, name=fields[name])
    draft = EntryDraft(
        action=action,
        actor=tenant.actor(by, Source.CHAT),
        workspace_id=tenant.workspace.pk,
        **fields,
    )
    return record(draft)
