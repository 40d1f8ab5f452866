"""Calls in the log, and the addresses of its pages."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from tests.factories import Tenant

SECRET_ARGUMENT = "only-for-auditors"


def a_call(tenant: Tenant, *, tool: str = "echo", outcome: Outcome = Outcome.OK) -> AuditEntry:
    """Record one call from request to end; gives the last entry."""
    requested = EntryDraft(
        action=Action.TOOL_CALL_REQUESTED,
        actor=tenant.actor("member"),
        workspace_id=tenant.workspace.pk,
        call_id=uuid4(),
        server=Ref(id=uuid4(), name="notes"),
        tool=Ref(id=uuid4(), name=tool),
        arguments=f'{{"text": "{SECRET_ARGUMENT}"}}'.encode(),
    )
    record(requested)
    return record(
        replace(
            requested,
            action=Action.TOOL_CALL_FINISHED,
            outcome=outcome,
            result=b'{"text": "done"}',
            duration_ms=12,
        )
    )


def a_refusal(tenant: Tenant) -> AuditEntry:
    return record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.POLICY,
            rule="deny",
            server=Ref(id=None, name="notes"),
            tool=Ref(id=None, name="delete_everything"),
        )
    )


def url(tenant: Tenant, path: str = "") -> str:
    return f"/w/{tenant.workspace.slug}/audit/{path}"


def opened(tenant: Tenant) -> int:
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    return rows.filter(action=Action.BODY_OPENED.value).count()
