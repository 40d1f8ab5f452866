"""Entries of some age, for what leaves the log with time."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome
from audit.models import AuditEntry
from audit.policies import DEFAULT
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, drafted, write
from tests.factories import Tenant

NOW = timezone.now()


def note(tenant: Tenant, *, days_ago: float = 0, role: str = "member") -> AuditEntry:
    """One finished call, some days ago."""
    draft = EntryDraft(
        action=Action.TOOL_CALL_FINISHED,
        outcome=Outcome.OK,
        actor=tenant.actor(role),
        workspace_id=tenant.workspace.pk,
        call_id=uuid7(),
        result=b'{"text":"what was said"}',
    )
    entry, body = drafted(draft, DEFAULT)
    entry.created_at = NOW - timedelta(days=days_ago)
    write(entry, body)
    return entry


def sealed(tenant: Tenant, ages: list[float]) -> list[AuditEntry]:
    """An entry of each age in days, all sealed."""
    entries = [note(tenant, days_ago=age) for age in ages]
    seal_pending()
    return entries
