"""Entries of calls of one tool."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from audit.actions import Action
from audit.services import EntryDraft, Ref
from tests.factories import Tenant


def draft_of(tenant: Tenant, action: Action, **more: Any) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=tenant.actor("member"),
        workspace_id=tenant.workspace.pk,
        server=Ref(id=uuid4(), name="mail"),
        tool=Ref(id=uuid4(), name="send"),
        **more,
    )
