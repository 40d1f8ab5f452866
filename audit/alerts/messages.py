"""An alert's messages as rows of its own transaction: what is rolled back is told to nobody (REL-47)."""

from __future__ import annotations

from typing import Literal

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override

from audit.alerts.filtering import log_path_of
from audit.alerts.notices import notify, readers_of
from audit.alerts.words import alert_message, condition_of
from audit.models import Alert, AlertDelivery, AlertRule
from audit.models.alerts import LONGEST_URL
from workspaces.database import database_now
from workspaces.delivery.mails import public_url
from workspaces.people.memberships import suspended_addresses
from workspaces.words.formats import written_for

Ending = Literal["switched_off", "deleted"]
"""What somebody did to a rule that ended its alert."""


def tell(rule: AlertRule, alert: Alert, *, kind: str) -> None:
    """Put "raised", "reminder" or "ended" on its way to everybody the rule names."""
    workspace = rule.workspace
    with (
        override(settings.LANGUAGE_CODE),
        written_for(None),
    ):  # others read it, whoever's change it came of
        message = alert_message(rule, workspace.name, kind=kind, value=alert.value)
        change = _("To change this rule, or whom it tells:")
    path = log_path_of(alert, rule, is_told=True)
    url = public_url(path)
    rule_url = public_url(reverse("audit:alert_rule", args=[workspace.slug, rule.pk]))
    if rule.tells_bell:
        notify(
            workspace_id=rule.workspace_id,
            user_ids=readers_of(rule.workspace_id),
            kind=f"alert.{kind}",
            title=message.subject,
            text=message.short,
            url=path
            if len(path) <= LONGEST_URL
            else reverse("audit:alerts", args=[workspace.slug]),
        )
    now = database_now()
    shut_out = suspended_addresses(rule.workspace_id)
    for address in rule.emails:
        if address.lower() in shut_out:
            continue
        AlertDelivery.objects.create(
            workspace_id=rule.workspace_id,
            rule=rule,
            channel=AlertDelivery.Channel.EMAIL,
            target=address,
            payload={
                "subject": message.subject,
                "text": f"{message.text}\n\n{url}\n\n{change}\n{rule_url}\n",
            },
            next_attempt_at=now,
        )
    tell_program(rule, alert, kind=kind)


def tell_program(
    rule: AlertRule, alert: Alert, *, kind: str, why: Ending | None = None
) -> AlertDelivery | None:
    """Put "raised", "reminder" or "ended" on its way to the rule's webhook, if it has one.

    Args:
        why: what somebody did that ended the alert.
    """
    if not rule.webhook_url:
        return None
    with override(settings.LANGUAGE_CODE), written_for(None):
        condition = condition_of(rule)
    now = database_now()
    return AlertDelivery.objects.create(
        workspace_id=rule.workspace_id,
        rule=rule,
        channel=AlertDelivery.Channel.WEBHOOK,
        target=rule.webhook_url,
        payload={
            "type": f"alert.{kind}",
            "timestamp": now.isoformat(),
            "data": {
                "alert_id": str(alert.pk),
                "rule_id": str(rule.pk),
                "rule": rule.name,
                "condition": condition,
                "filter": rule.query,
                "value": alert.value,
                "threshold": rule.threshold,
                "started_at": alert.started_at.isoformat(),
                "ended_at": alert.ended_at.isoformat() if alert.ended_at else None,
                "ended_by": why,
                "workspace_id": str(rule.workspace_id),
                "url": public_url(log_path_of(alert, rule, is_told=True)),
            },
        },
        next_attempt_at=now,
    )
