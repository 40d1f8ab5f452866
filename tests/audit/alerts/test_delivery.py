"""Messages of alerts on their way: who does not answer holds up nobody else, and each hears of things in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from starlette.responses import Response

from audit.alerts import delivery
from audit.models import AlertDelivery, AlertRule
from tests.audit.streams.receivers import HttpReceiver
from tests.factories import Tenant, TwoTenants
from tests.other_keys import having
from tests.patience import PATIENCE, wait_until
from tests.threads import giving_back
from workspaces.delivery import sending, webhooks
from workspaces.delivery.webhooks import new_secret

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpReceiver]:
    monkeypatch.setattr(webhooks, "ANSWER_SECONDS", PATIENCE)
    receiver = HttpReceiver(hangs=True)
    yield receiver
    receiver.stop()


def rule_of(tenant: Tenant, url: str) -> AlertRule:
    return AlertRule.objects.create(
        workspace=tenant.workspace,
        name="Timeouts",
        condition=AlertRule.Condition.TIMEOUT,
        threshold=1,
        webhook_url=url,
    )


def put(rule: AlertRule, kind: str = "raised", **fields: Any) -> AlertDelivery:
    return AlertDelivery.objects.create(
        workspace_id=rule.workspace_id,
        rule=rule,
        channel=AlertDelivery.Channel.WEBHOOK,
        target=rule.webhook_url,
        payload={"type": f"alert.{kind}"},
        next_attempt_at=timezone.now(),
        **fields,
    )


def status_of(row: AlertDelivery) -> str:
    row.refresh_from_db()
    return row.status


def test_a_program_that_hangs_holds_up_nobody(
    two_workspaces: TwoTenants, hanging: HttpReceiver, receiver: HttpReceiver
) -> None:
    """REL-1381: neither its own workspace's others, nor those of other workspaces, however many of it hang."""
    rules = [rule_of(two_workspaces.a, f"{hanging.url}?{number}") for number in range(30)]
    for rule in rules:
        put(rule)
    other = put(rule_of(two_workspaces.b, receiver.url))
    sender = threading.Thread(target=giving_back(delivery.deliver_due))
    sender.start()
    try:
        wait_until(lambda: status_of(other) == "delivered")
        late = put(rule_of(two_workspaces.b, f"{receiver.url}?late"))
        wait_until(lambda: status_of(late) == "delivered")
        assert sender.is_alive()
        assert len(hanging.heard) == sending.MOST_PER_WORKSPACE
    finally:
        hanging.let_go.set()
        sender.join(PATIENCE)
    sent = AlertDelivery.objects.for_workspace(two_workspaces.a.workspace)
    assert sent.filter(status="delivered").count() == 30


def test_a_destination_gets_one_at_a_time(
    two_workspaces: TwoTenants, hanging: HttpReceiver
) -> None:
    """REL-1381: also where several rules name it."""
    rows = [put(rule_of(two_workspaces.a, hanging.url)) for _ in range(3)]
    sender = threading.Thread(target=giving_back(delivery.deliver_due))
    sender.start()
    try:
        wait_until(lambda: len(hanging.heard) == 1)
        assert not hanging.let_go.wait(2 * sending._LOOK_SECONDS)
        assert len(hanging.heard) == 1
    finally:
        hanging.let_go.set()
        sender.join(PATIENCE)
    assert [status_of(row) for row in rows] == ["delivered"] * 3


def test_nobody_hears_of_the_end_before_the_beginning(
    two_workspaces: TwoTenants, receiver: HttpReceiver
) -> None:
    """REL-1381: what comes later waits for what is tried again, and for nothing that was given up."""
    rule, other = (rule_of(two_workspaces.a, receiver.url) for _ in range(2))
    raised, ended = put(rule), put(rule, "ended")
    receiver.answers = [Response(status_code=500)]
    delivery.deliver_due()
    free = put(other)
    delivery.deliver_due()
    assert [status_of(row) for row in (raised, ended, free)] == ["waiting", "waiting", "delivered"]
    AlertDelivery.objects.across_workspaces().update(next_attempt_at=timezone.now())
    delivery.deliver_due()
    assert [status_of(row) for row in (raised, ended)] == ["delivered"] * 2
    listed = [b"ended" in body for _, body in receiver.heard]
    assert listed == [False, False, False, True]
    put(rule, status="given_up")
    last = put(rule, "ended")
    delivery.deliver_due()
    assert status_of(last) == "delivered"


def test_what_cannot_be_sent_keeps_no_other(
    two_workspaces: TwoTenants, receiver: HttpReceiver
) -> None:
    """REL-1381: a message that nobody can write down is one message."""
    broken, whole = (rule_of(two_workspaces.a, receiver.url) for _ in range(2))
    lost = put(broken)
    lost.channel, lost.payload, lost.target = "email", {}, "a@example.org"
    lost.save()
    AlertRule.objects.for_workspace(two_workspaces.a.workspace).filter(pk=broken.pk).update(
        emails=["a@example.org"]
    )
    sent = put(whole)
    delivery.deliver_due()
    assert (status_of(lost), status_of(sent)) == ("waiting", "delivered")
    assert lost.last_error == "It could not be sent."


def test_a_key_that_is_gone_is_told_and_the_message_waits(
    two_workspaces: TwoTenants, receiver: HttpReceiver
) -> None:
    """REL-2095: it goes out once the key is back; the reason was that it could not be sent."""
    rule = rule_of(two_workspaces.a, receiver.url)
    rule.webhook_secret = new_secret()
    rule.save()
    row = put(rule)
    with having():
        delivery.deliver_due()
    row.refresh_from_db()
    assert (status_of(row), receiver.heard) == ("waiting", [])
    assert "encryption key" in row.last_error
    AlertDelivery.objects.across_workspaces().update(next_attempt_at=timezone.now())
    delivery.deliver_due()
    assert status_of(row) == "delivered"


def test_what_fails_is_told_without_comparing_all_messages_with_each_other(
    two_workspaces: TwoTenants,
) -> None:
    """REL-1938: of each address the newest message that failed, where none arrived since; however long the backlog is."""
    tenant = two_workspaces.a
    arrives, fails, mended, renamed = (
        rule_of(tenant, f"https://{n}.example/") for n in ("arrives", "fails", "mended", "renamed")
    )
    put(arrives, status="delivered")
    put(arrives)  # nobody has tried it yet
    for status in ("delivered", "given_up", "waiting"):
        newest = put(fails, status=status, last_error="" if status == "delivered" else status)
    put(mended, status="given_up", last_error="no answer")
    put(mended, status="delivered")
    put(renamed, last_error="no answer")
    renamed.webhook_url = "https://another.example/"
    renamed.save()
    put(rule_of(two_workspaces.b, "https://other.example/"), last_error="no answer")
    with CaptureQueriesContext(connection) as captured:
        (found,) = delivery.failing(tenant.workspace)
    assert (found.pk, found.last_error, found.rule) == (newest.pk, "waiting", fails)
    (asked,) = captured
    assert "EXISTS" not in asked["sql"], "which reads all messages of an address for each of them"
