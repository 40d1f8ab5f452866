"""Alerts: told once, with reminders and an end, through mail, webhook and bell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.core import mail
from django.db import connection, transaction
from django.utils import timezone
from starlette.responses import Response
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from audit.alerts import delivery, evaluation, notices, services
from audit.alerts.conditions import measure
from audit.alerts.services import RECOMMENDED, RuleDraft
from audit.models import Alert, AlertDelivery, AlertRule, AuditEntry, Notice
from audit.services import EntryDraft, Ref, record
from tests.audit.streams.receivers import HttpReceiver
from tests.factories import Tenant, TwoTenants
from workspaces import outbox, webhooks
from workspaces.actors import Source
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.mails import public_url
from workspaces.models import Membership
from workspaces.people.services import remove_member

pytestmark = pytest.mark.django_db
_C = AlertRule.Condition


@pytest.fixture(scope="module")
def listening() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def receiver(listening: HttpReceiver) -> HttpReceiver:
    listening.heard.clear()
    listening.answers.clear()
    return listening


def write(tenant: Tenant, action: Action, count: int = 1, **fields: Any) -> list[AuditEntry]:
    fields.setdefault("workspace_id", tenant.workspace.pk)
    fields.setdefault("server", Ref(id=None, name="files"))
    return [
        record(EntryDraft(action=action, actor=tenant.actor("member", Source.CHAT), **fields))
        for _ in range(count)
    ]


def make(tenant: Tenant, condition: str, threshold: int = 1, **fields: Any) -> AlertRule:
    draft = RuleDraft(
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
    return evaluation.evaluate(rule, timezone.now() + timedelta(**later))


CALL = Action.TOOL_CALL_FINISHED
SITUATIONS: list[tuple[str, int, list[tuple[Action, int, dict[str, Any]]]]] = [
    (
        _C.CONNECTION,
        2,
        [(Action.SERVER_ERROR, 1, {}), (CALL, 1, {"outcome": Outcome.TRANSPORT_ERROR})],
    ),
    (_C.TIMEOUT, 2, [(CALL, 2, {"outcome": Outcome.TIMEOUT})]),
    (
        _C.ERROR_RATE,
        50,
        [(CALL, 5, {"outcome": Outcome.TOOL_ERROR}), (CALL, 5, {"outcome": Outcome.OK})],
    ),
    (_C.REFUSAL, 2, [(Action.TOOL_CALL_REFUSED, 2, {"refused_by": RefusedBy.POLICY})]),
    (_C.QUOTA, 1, [(Action.TOOL_CALL_REFUSED, 1, {"refused_by": RefusedBy.QUOTA})]),
    (_C.TAMPERING, 1, [(Action.LOG_LOSS, 1, {"workspace_id": None})]),
    (_C.TAMPERING, 1, [(Action.LOG_VERIFIED, 1, {"details": {"result": "altered"}})]),
]


@pytest.mark.parametrize(("condition", "threshold", "written"), SITUATIONS)
def test_each_condition_is_seen_at_its_threshold_and_not_before(
    tenant: Tenant, condition: str, threshold: int, written: Any
) -> None:
    rule = make(tenant, condition, threshold)
    write(tenant, CALL, outcome=Outcome.OK)
    write(tenant, Action.LOG_VERIFIED, details={"result": "whole"})
    assert look(rule) is None
    first, *others = [(action, fields) for action, count, fields in written for _ in range(count)]
    if others:
        write(tenant, first[0], **first[1])
        assert look(rule) is None, "one less than the threshold"
    else:
        others = [first]
    for action, fields in others:
        write(tenant, action, **fields)
    if condition == _C.ERROR_RATE:
        write(tenant, CALL, outcome=Outcome.TOOL_ERROR)  # beside the first good one
    alert = look(rule)
    assert alert is not None
    assert alert.value >= threshold


def test_an_approval_counts_once_it_has_waited(tenant: Tenant) -> None:
    rule = make(tenant, _C.APPROVAL, window_minutes=10)
    call = uuid7()
    write(tenant, Action.APPROVAL_REQUESTED, call_id=call)
    assert look(rule) is None
    assert look(rule, minutes=11) is not None
    write(tenant, Action.APPROVAL_GRANTED, call_id=call)
    assert look(rule, minutes=12) is None
    assert Alert.objects.for_workspace(tenant.workspace).get().ended_at is not None


def test_the_sealer_that_has_stopped_is_a_finding(tenant: Tenant) -> None:
    rule = make(tenant, _C.TAMPERING)
    write(tenant, CALL, outcome=Outcome.OK)
    assert look(rule) is None
    assert look(rule, minutes=5) is not None


def test_rules_look_at_their_server_and_tool_only(two_workspaces: TwoTenants) -> None:
    """SEC-01: and at their workspace."""
    a, b = two_workspaces.a, two_workspaces.b
    rule = make(a, _C.TIMEOUT, server_name="files", tool_name="read")
    write(b, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="read"))
    write(a, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="write"))
    write(
        a,
        CALL,
        outcome=Outcome.TIMEOUT,
        server=Ref(id=None, name="x"),
        tool=Ref(id=None, name="read"),
    )
    assert look(rule) is None
    write(a, CALL, outcome=Outcome.TIMEOUT, tool=Ref(id=None, name="read"))
    assert look(rule) is not None


def test_one_alert_is_open_and_told_once(tenant: Tenant, receiver: HttpReceiver) -> None:
    """De-duplicated, with a reminder after the hours said, and a word when it is over.

    REL-1730: the bell has the number, and the mail the way to the rule.
    """
    rule = make(
        tenant,
        _C.TIMEOUT,
        emails=["oncall@example.org"],
        webhook_url=receiver.url,
        remind_hours=2,
        window_minutes=300,
    )
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
    for _ in range(3):
        look(rule)
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    told = set(people.values_list("user_id", flat=True))
    assert told == {tenant.owner.pk, tenant.admin.pk, tenant.auditor.pk}, "who may see the log"


def test_webhooks_of_alerts_are_signed_and_carry_one_id(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    """REL-47: a process that dies between sending and noting it sends again, under the same id."""
    rule = make(tenant, _C.TIMEOUT, webhook_url=receiver.url, emails=["a@example.org"])
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    rule = make(tenant, _C.TIMEOUT, emails=["a@example.org"])
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
    with pytest.raises(RuntimeError), transaction.atomic():
        assert look(rule) is not None
        raise RuntimeError
    assert delivery.deliver_due() == 0
    assert not Notice.objects.for_workspace(tenant.workspace).exists()
    assert look(rule) is not None


def test_a_message_that_fails_is_tried_again_later(tenant: Tenant, receiver: HttpReceiver) -> None:
    rule = make(tenant, _C.TIMEOUT, webhook_url=receiver.url)
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    rule = make(tenant, _C.TIMEOUT, webhook_url=secret, tells_bell=False)
    page = f"/w/{tenant.workspace.slug}/audit/alerts/"
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    rule = make(tenant, _C.TIMEOUT, emails=addresses, tells_bell=False)
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    told = AlertDelivery.objects.for_workspace(tenant.workspace)
    assert sorted(told.values_list("status", flat=True)) == ["delivered", "given_up", "given_up"]


def test_recommended_rules_are_added_once(tenant: Tenant) -> None:
    owner = tenant.actor("owner")
    assert services.add_recommended(workspace_id=tenant.workspace.pk, actor=owner) == len(
        RECOMMENDED
    )
    assert services.add_recommended(workspace_id=tenant.workspace.pk, actor=owner) == 0
    kinds = AlertRule.objects.for_workspace(tenant.workspace).values_list("condition", flat=True)
    assert set(kinds) == set(_C.values) - {_C.ENTRIES}, "what to count there is for people to say"
    assert evaluation.evaluate_all() == len(RECOMMENDED)


def test_settings_of_rules_are_checked_and_told(tenant: Tenant, receiver: HttpReceiver) -> None:
    """SEC-93: the secret that signs is in no entry."""
    rule, secret = services.create_rule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        draft=RuleDraft(
            name="x", condition="quota", threshold=1, window_minutes=5, webhook_url=receiver.url
        ),
    )
    assert secret
    for wrong in (
        {"condition": "nonsense"},
        {"condition": "error_rate", "threshold": 101},
        {"condition": "timeout", "window_minutes": 100_000},
        {"condition": "timeout", "emails": ["no address"]},
        {"condition": "timeout", "webhook_url": "ftp://x/"},
    ):
        with pytest.raises(InvalidInput):
            make(tenant, **wrong)
    with pytest.raises(PermissionDenied):
        services.switch_rule(rule=rule, actor=tenant.actor("admin"), is_active=False)
    write(tenant, Action.TOOL_CALL_REFUSED, refused_by=RefusedBy.QUOTA)
    look(rule)
    services.switch_rule(rule=rule, actor=tenant.actor("owner"), is_active=False)
    assert evaluation.open_alert(rule) is None
    assert look(rule) is None
    services.delete_rule(rule=rule, actor=tenant.actor("owner"))
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert entries.filter(action="config.changed").count() == 3
    assert entries.filter(action="alert.ended").get().details["why"]
    assert secret not in json.dumps(list(entries.values_list("details", flat=True)))
    with patch.object(services, "MOST_RULES", 0), pytest.raises(Conflict):
        make(tenant, "timeout")


@pytest.mark.parametrize("way", ["switched_off", "deleted"])
def test_a_program_hears_of_the_end_also_where_somebody_ended_it(
    tenant: Tenant, receiver: HttpReceiver, way: str
) -> None:
    """REL-1781: its incident would stay open for ever. People are told nothing: nobody knows whether all is well."""
    rule, secret = services.create_rule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        draft=RuleDraft(
            name="x",
            condition=_C.TIMEOUT,
            threshold=1,
            window_minutes=5,
            webhook_url=receiver.url,
            emails=["a@example.org"],
        ),
    )
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    told = json.loads(body)
    assert told["type"] == "alert.ended"
    assert told["data"]["alert_id"] == json.loads(raised[1])["data"]["alert_id"] == str(alert.pk)
    assert told["data"]["ended_at"]
    assert told["data"]["ended_by"] == way
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
    bad = make(tenant, _C.TIMEOUT, name="bad")
    make(tenant, _C.TIMEOUT, name="good")
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
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
    rule = make(tenant, _C.TIMEOUT, emails=["before@example.org"], tells_bell=False)
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
    as_read = AlertRule.objects.for_workspace(tenant.workspace).select_related("workspace").get()
    draft = RuleDraft(
        name="a rule",
        condition=_C.TIMEOUT,
        threshold=1,
        window_minutes=15,
        emails=["after@example.org"],
        tells_bell=False,
    )
    services.update_rule(rule=rule, actor=tenant.actor("owner"), draft=draft)
    told = AlertDelivery.objects.for_workspace(tenant.workspace)
    assert look(as_read) is None
    assert not told.exists()
    assert look(rule) is not None
    assert told.get().target == "after@example.org"


def test_counting_is_bounded(tenant: Tenant) -> None:
    """However many entries a minute brings, a look costs no more."""
    rule = make(tenant, _C.TIMEOUT)
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as queries:
        look(rule)
    assert any("LIMIT 10000" in query["sql"] for query in queries)


def test_the_bell_shows_a_persons_own_lines(two_workspaces: TwoTenants) -> None:
    """SEC-01: nobody reads or clears somebody else's."""
    a, b = two_workspaces.a, two_workspaces.b
    for tenant in (a, b):
        notices.notify(
            workspace_id=tenant.workspace.pk,
            user_ids=[tenant.owner.pk, tenant.admin.pk],
            kind="alert.raised",
            title=f"<b>{tenant.workspace.slug}</b>",
            text="",
            url="/w/a/audit/alerts/",
        )
    client = a.client("owner")
    page = client.get("/w/a/audit/").content.decode()
    assert "1 unread" in page
    told = client.get("/w/a/notices/?format=json").json()
    assert told["unread"] == 1
    assert [line["title"] for line in told["notices"]] == ["<b>a</b>"]
    assert "&lt;b&gt;a" in client.get("/w/a/notices/").content.decode()
    assert client.post("/w/a/notices/read/").status_code == 200
    assert client.get("/w/a/notices/?format=json").json()["unread"] == 0
    assert a.client("admin").get("/w/a/notices/?format=json").json()["unread"] == 1
    assert client.get(f"/w/{b.workspace.slug}/notices/").status_code == 404
    assert notices.unread(b.workspace, b.owner) == 1


def test_old_messages_and_lines_are_forgotten(tenant: Tenant) -> None:
    rule = make(tenant, _C.TIMEOUT, emails=["a@example.org"])
    write(tenant, CALL, outcome=Outcome.TIMEOUT)
    look(rule)
    delivery.deliver_due()
    long_ago = timezone.now() - timedelta(days=100)
    AlertDelivery.objects.across_workspaces().update(created_at=long_ago)
    Notice.objects.across_workspaces().update(created_at=long_ago)
    assert delivery.trim_deliveries() == 1
    assert notices.trim_notices() == 3


def test_open_pages_of_a_person_are_told_of_the_bell(tenant: Tenant) -> None:
    """Ours: only that person's, when a line comes and when all are read; and not when nothing changes."""
    with patch.object(notices, "announce") as told:
        notices.notify(
            workspace_id=tenant.workspace.pk,
            user_ids=[tenant.owner.pk],
            kind="alert.raised",
            title="x",
            text="",
            url="",
        )
        notices.mark_read(tenant.workspace, tenant.owner)
        notices.mark_read(tenant.workspace, tenant.owner)
    nudges = [call.args[1] for call in told.call_args_list]
    assert [nudge.kind for nudge in nudges] == ["notice.changed"] * 2
    assert {nudge.user_id for nudge in nudges} == {str(tenant.owner.pk)}


def test_opening_a_notice_marks_it_alone_as_read(two_workspaces: TwoTenants) -> None:
    """REL-916: and nobody reads somebody else's."""
    a = two_workspaces.a
    for person in (a.owner, a.admin):
        for title in ("one", "two"):
            notices.notify(
                workspace_id=a.workspace.pk,
                user_ids=[person.pk],
                kind="alert.raised",
                title=title,
                text="",
                url="",
            )
    newest, older = notices.notices_of(a.workspace, a.owner)
    client = a.client("owner")
    assert f'data-notice="{older.pk}"' in client.get("/w/a/notices/").content.decode()
    told = client.post("/w/a/notices/read/?format=json", {"notice": str(older.pk)}).json()
    assert told == {"unread": 1}
    older.refresh_from_db()
    newest.refresh_from_db()
    assert (older.read_at is not None, newest.read_at) == (True, None)
    theirs = notices.notices_of(a.workspace, a.admin)[0]
    for other in (str(theirs.pk), "nonsense"):
        client.post("/w/a/notices/read/?format=json", {"notice": other})
    assert notices.unread(a.workspace, a.admin) == 2
    assert notices.unread(a.workspace, a.owner) == 1


def test_a_rule_for_a_name_that_the_log_does_not_know_is_told(tenant: Tenant) -> None:
    """REL-923, REL-1724: it may be misspelt; the rule is kept, since its server may come later."""
    write(tenant, Action.TOOL_CALL_FINISHED, server=Ref(id=None, name="mail"), outcome=Outcome.OK)
    client, add = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/add/"
    values = {"name": "x", "condition": "timeout", "threshold": 1, "window_minutes": 5}
    values |= {"least_calls": 1, "remind_hours": 0}
    told = "The log names no server “mial” so far."
    page = client.post(add, {**values, "query": "server:mial"}, follow=True).content.decode()
    assert told in page
    assert f'data-keeps-typed action="{add}"' in page
    page = client.post(add, {**values, "query": "server:mail"}, follow=True).content.decode()
    assert "The log names no" not in page
    assert AlertRule.objects.for_workspace(tenant.workspace).count() == 2


def test_a_rule_that_can_tell_nobody_says_so(tenant: Tenant) -> None:
    """REL-1731: as it is saved and in the list; one that would never alert is not taken."""
    client, page = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/"
    values = {"name": "x", "condition": "spending", "threshold": 101, "window_minutes": 5}
    values |= {"least_calls": 1, "remind_hours": 0}
    refused = client.post(f"{page}add/", values)
    assert refused.status_code == 422
    assert "It is a number of per cent, at most 100." in refused.content.decode()
    saved = client.post(f"{page}add/", {**values, "threshold": 100}, follow=True).content.decode()
    assert "The rule tells nobody." in saved
    assert "Tells nobody" in client.get(page).content.decode()
    rule = AlertRule.objects.for_workspace(tenant.workspace).get()
    told = {**values, "threshold": 100, "tells_bell": "on"}
    assert (
        "The rule tells nobody."
        not in client.post(f"{page}{rule.pk}/", told, follow=True).content.decode()
    )
    assert "Tells nobody" not in client.get(page).content.decode()
