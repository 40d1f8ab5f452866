"""Texts that a spreadsheet would take for formulas, and entries that hold them."""

from __future__ import annotations

from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from tests.factories import Tenant
from workspaces.actors import Actor, Source

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\x00=1",
    "  =1",
    '"=1',
    "'=1",
    "\u3000=1",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20a",
    "\ufeff=cmd|' /C calc'!A0",
    "\u200b=1",
]


def write(tenant: Tenant, name: str) -> AuditEntry:
    actor = Actor.system(label=name, source=Source.TASK, workspace_id=tenant.workspace.pk)
    return record(
        EntryDraft(
            action=Action.SERVER_ERROR,
            actor=actor,
            workspace_id=tenant.workspace.pk,
            server=Ref(id=None, name=name),
            tool=Ref(id=None, name=name),
            model=name,
            rule=name,
            details={name: name},
        )
    )
