"""Rules, the entries that they count, and a look at them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from audit.actions import Action
from audit.alerts import evaluation, services
from audit.alerts.services import AlertRuleDraft
from audit.models import Alert, AlertRule, AuditEntry
from audit.services import EntryDraft, Ref, record
from tests.factories import Tenant
from workspaces.actors import Source

CONDITION = AlertRule.Condition
CALL = Action.TOOL_CALL_FINISHED


def write_entries(
    tenant: Tenant, action: Action, count: int = 1, **fields: Any
) -> list[AuditEntry]:
    """Entries about the server *files*, unless the fields say otherwise."""
    fields.setdefault("workspace_id", tenant.workspace.pk)
    fields.setdefault("server", Ref(id=None, name="files"))
    return [
        record(EntryDraft(action=action, actor=tenant.actor("member", Source.CHAT), **fields))
        for _ in range(count)
    ]


def make_rule(tenant: Tenant, condition: str, threshold: int = 1, **fields: Any) -> AlertRule:
    """A rule of the owner's."""
    draft = AlertRuleDraft(
        name=fields.pop("name", "a rule"),
        condition=condition,
        threshold=threshold,
        window_minutes=fields.pop("window_minutes", 15),
        **fields,
    )
    return services.create_rule(
        workspace_id=tenant.workspace.pk, actor=tenant.actor("owner"), draft=draft
    )[0]


def look(rule: AlertRule, **later: float) -> Alert | None:
    """What comes of a look at a rule, now or later."""
    return evaluation.evaluate(rule, timezone.now() + timedelta(**later))
