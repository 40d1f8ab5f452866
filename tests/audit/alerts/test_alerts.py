"""Alerts: told once, with reminders and an end, through mail, webhook and bell."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone
from starlette.responses import Response

from audit.actions import Outcome
from audit.alerts import delivery, evaluation, notices, services
from audit.alerts.conditions import measure
from audit.alerts.services import AlertRuleDraft
from audit.models import Alert, AlertDelivery, AlertRule, AuditEntry, Notice
from tests.audit.alerts.rules import CALL, CONDITION, look, make_rule, write_entries
from tests.audit.streams.receivers import HttpReceiver
from tests.factories import Tenant
from workspaces.delivery import outbox, webhooks
from workspaces.delivery.mails import public_url
from workspaces.models import Membership, Workspace
from workspaces.people.services import remove_member

pytestmark = pytest.mark.django_db


def test_one_alert_is_open_and_told_once(tenant: Tenant, receiver: HttpReceiver) -> None:
    """De-duplicated, with a reminder after the hours said, and a word when it is over.

    REL-1730: the bell has the number, and the mail the way to the rule.
    """
    rule = make_rule(
        tenant,
        CONDITION.TIMEOUT,
        emails=["oncall@example.org"],
        webhook_url=receiver.url,
        remind_hours=2,
        window_minutes=300,
    )
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    for _ in range(3):
        look(rule)
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)
    alert = Alert.objects.for_workspace(tenant.workspace).get()
    assert (alert.value, alert.peak) == (2, 2)
    assert delivery.deliver_due() == 2
    look(rule, hours=3)
    look(rule, hours=3.5)
    look(rule, hours=6)
    delivery.deliver_due()
    types = [json.loads(body)["type"] for _, body in receiver.heard]
    assert types == ["alert.raised", "alert.reminder", "alert.ended"]
    assert [m.subject.partition(":")[0] for m in mail.outbox] == [
        "Alert",
        "Still",
        "Back to normal",
    ]
    assert mail.outbox[0].to == ["oncall@example.org"]
    at = f"/w/{tenant.workspace.slug}/audit/alerts/{rule.pk}/"
    assert all(
        f"To change this rule, or whom it tells:\n{public_url(at)}\n" in m.body for m in mail.outbox
    )
    bell = Notice.objects.for_workspace(tenant.workspace).filter(user=tenant.owner).order_by("pk")
    assert list(bell.values_list("text", flat=True)) == [
        "1 timeout. The rule: At least 1 timeout within 5 hours.",
        "2 timeouts. The rule: At least 1 timeout within 5 hours.",
        "Now: 0 timeouts.",
    ]
    actions = list(
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(action__startswith="alert.")
        .order_by("created_at")
        .values_list("action", flat=True)
    )
    assert actions == ["alert.raised", "alert.ended"]
    people = Notice.objects.for_workspace(tenant.workspace).filter(kind="alert.raised")
    recipients = set(people.values_list("user_id", flat=True))
    assert recipients == {tenant.owner.pk, tenant.admin.pk, tenant.auditor.pk}, (
        "who may see the log"
    )


def test_webhooks_of_alerts_are_signed_and_carry_one_id(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    """REL-47: a process that dies between sending and noting it sends again, under the same id."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, webhook_url=receiver.url, emails=["a@example.org"])
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)

    class Killed(BaseException):
        pass

    with patch.object(outbox, "note", side_effect=[None, Killed]), pytest.raises(Killed):
        delivery.deliver_due()
    assert delivery.deliver_due() == 0, "until its claim ends, nobody else sends"
    AlertDelivery.objects.across_workspaces().update(next_attempt_at=timezone.now())
    assert delivery.deliver_due() == 2
    ids = [headers["webhook-id"] for headers, _ in receiver.heard]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert ids[0] == json.loads(receiver.heard[0][1])["id"]
    assert receiver.heard[0][0]["webhook-signature"].startswith("v1,")
    mails = [message.extra_headers["Message-ID"] for message in mail.outbox]
    assert len(mails) == 2
    assert len(set(mails)) == 1


def test_nothing_is_told_of_an_alert_that_was_rolled_back(tenant: Tenant) -> None:
    """REL-47."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, emails=["a@example.org"])
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    with pytest.raises(RuntimeError), transaction.atomic():
        assert look(rule) is not None
        raise RuntimeError
    assert delivery.deliver_due() == 0
    assert not Notice.objects.for_workspace(tenant.workspace).exists()
    assert look(rule) is not None


def test_a_message_that_fails_is_tried_again_later(tenant: Tenant, receiver: HttpReceiver) -> None:
    rule = make_rule(tenant, CONDITION.TIMEOUT, webhook_url=receiver.url)
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)
    receiver.answers = [Response(status_code=500)]
    delivery.deliver_due()
    waiting = AlertDelivery.objects.for_workspace(tenant.workspace).get()
    assert waiting.last_error == "It answered with status 500."
    assert waiting.status == AlertDelivery.Status.WAITING
    assert waiting.next_attempt_at > timezone.now()
    AlertDelivery.objects.across_workspaces().update(next_attempt_at=timezone.now())
    delivery.deliver_due()
    waiting.refresh_from_db()
    assert waiting.status == AlertDelivery.Status.DELIVERED


def test_the_page_says_which_messages_do_not_arrive(tenant: Tenant, receiver: HttpReceiver) -> None:
    """REL-1722: where to, why, and whether Trellis tries again; and nothing once a later one has arrived.

    SEC-781: of a webhook its host is named alone, since its path and query may be a key to it.
    """
    secret = f"{receiver.url}?key=canary-of-the-address"
    rule = make_rule(tenant, CONDITION.TIMEOUT, webhook_url=secret, tells_bell=False)
    page = f"/w/{tenant.workspace.slug}/audit/alerts/"
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)
    receiver.answers = [Response(status_code=500)]
    delivery.deliver_due()
    waiting = " ".join(tenant.client("auditor").get(page).content.decode().split())
    assert "A message to 127.0.0.1 has not arrived: It answered with status 500." in waiting
    assert "canary-of-the-address" not in waiting
    assert "Trellis tries again at" in waiting
    AlertDelivery.objects.across_workspaces().update(status=AlertDelivery.Status.GIVEN_UP)
    lost = " ".join(tenant.client("auditor").get(page).content.decode().split())
    assert "Trellis has stopped trying." in lost
    AlertDelivery.objects.create(
        workspace_id=rule.workspace_id,
        rule=rule,
        channel=AlertDelivery.Channel.WEBHOOK,
        target=rule.webhook_url,
        payload={},
        next_attempt_at=timezone.now(),
    )
    delivery.deliver_due()
    assert "has not arrived" not in tenant.client("auditor").get(page).content.decode()


def test_a_message_that_waits_goes_to_nobody_who_was_taken_out(tenant: Tenant) -> None:
    """SEC-624: out of the workspace, or out of the rule."""
    addresses = [tenant.member.email, "gone@example.org", "stays@example.org"]
    rule = make_rule(tenant, CONDITION.TIMEOUT, emails=addresses, tells_bell=False)
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    assert look(rule) is not None
    remove_member(
        membership=Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member),
        actor=tenant.actor("owner"),
    )
    rule.refresh_from_db()
    rule.emails.remove("gone@example.org")
    rule.save()
    assert delivery.deliver_due() == 3
    assert [one.to for one in mail.outbox] == [["stays@example.org"]]
    deliveries = AlertDelivery.objects.for_workspace(tenant.workspace)
    assert sorted(deliveries.values_list("status", flat=True)) == [
        "delivered",
        "given_up",
        "given_up",
    ]


def test_a_message_of_a_suspended_workspace_waits_until_that_is_open_again(tenant: Tenant) -> None:
    """REL-2613."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, emails=["stays@example.org"], tells_bell=False)
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    assert look(rule) is not None
    workspace = Workspace.objects.filter(pk=tenant.workspace.pk)
    workspace.update(is_active=False)
    assert delivery.deliver_due() == 0
    workspace.update(is_active=True)
    assert delivery.deliver_due() == 1
    assert [one.to for one in mail.outbox] == [["stays@example.org"]]


@pytest.mark.parametrize("way", ["switched_off", "deleted"])
def test_a_program_hears_of_the_end_also_where_somebody_ended_it(
    tenant: Tenant, receiver: HttpReceiver, way: str
) -> None:
    """REL-1781: its incident would stay open for ever. People are told nothing: nobody knows whether all is well."""
    rule, secret = services.create_rule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        draft=AlertRuleDraft(
            name="x",
            condition=CONDITION.TIMEOUT,
            threshold=1,
            window_minutes=5,
            webhook_url=receiver.url,
            emails=["a@example.org"],
        ),
    )
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    alert = look(rule)
    assert alert is not None
    delivery.deliver_due()
    mail.outbox.clear()
    lines = Notice.objects.for_workspace(tenant.workspace)
    lines_before = lines.count()
    if way == "deleted":
        services.delete_rule(rule=rule, actor=tenant.actor("owner"))
    else:
        services.switch_rule(rule=rule, actor=tenant.actor("owner"), is_active=False)
    delivery.deliver_due()
    raised, (headers, body) = receiver.heard
    answer = json.loads(body)
    assert answer["type"] == "alert.ended"
    assert answer["data"]["alert_id"] == json.loads(raised[1])["data"]["alert_id"] == str(alert.pk)
    assert answer["data"]["ended_at"]
    assert answer["data"]["ended_by"] == way
    signed = webhooks.signed_headers(
        secret=secret,
        event_id=headers["webhook-id"],
        timestamp=int(headers["webhook-timestamp"]),
        body=body,
    )
    assert headers["webhook-signature"] == signed["webhook-signature"]
    assert (mail.outbox, lines.count()) == ([], lines_before)
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert entries.filter(action="alert.ended").get().details["why"]
    assert delivery.failing(tenant.workspace) == []


def test_one_rule_that_fails_keeps_no_other_from_its_look(tenant: Tenant) -> None:
    bad = make_rule(tenant, CONDITION.TIMEOUT, name="bad")
    make_rule(tenant, CONDITION.TIMEOUT, name="good")
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    real = measure

    def broken(rule: AlertRule, now: Any) -> float:
        if rule.pk == bad.pk:
            raise ValueError
        return real(rule, now)

    with patch.object(evaluation, "measure", broken):
        assert evaluation.evaluate_all() == 2
    assert Alert.objects.for_workspace(tenant.workspace).get().rule.name == "good"


def test_a_rule_that_changes_while_it_is_looked_at_tells_nobody_of_before(tenant: Tenant) -> None:
    """REL-1282: neither a person who was taken out of it nor an address that was replaced; the next look tells."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, emails=["before@example.org"], tells_bell=False)
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    as_read = AlertRule.objects.for_workspace(tenant.workspace).select_related("workspace").get()
    draft = AlertRuleDraft(
        name="a rule",
        condition=CONDITION.TIMEOUT,
        threshold=1,
        window_minutes=15,
        emails=["after@example.org"],
        tells_bell=False,
    )
    services.update_rule(rule=rule, actor=tenant.actor("owner"), draft=draft)
    deliveries = AlertDelivery.objects.for_workspace(tenant.workspace)
    assert look(as_read) is None
    assert not deliveries.exists()
    assert look(rule) is not None
    assert deliveries.get().target == "after@example.org"


def test_old_messages_and_lines_are_forgotten(tenant: Tenant) -> None:
    rule = make_rule(tenant, CONDITION.TIMEOUT, emails=["a@example.org"])
    write_entries(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)
    delivery.deliver_due()
    long_ago = timezone.now() - timedelta(days=100)
    AlertDelivery.objects.across_workspaces().update(created_at=long_ago)
    Notice.objects.across_workspaces().update(created_at=long_ago)
    assert delivery.trim_deliveries() == 1
    assert notices.trim_notices() == 3
