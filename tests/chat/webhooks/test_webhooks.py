"""Webhooks: signed, sent at least once with one id, never for what was rolled back."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import threading
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.engine.states import RETRYABLE_TURNS
from chat.models import Turn, WebhookDelivery
from chat.services.turns import stop_turn
from chat.values import TurnStatus, WebhookEvent
from chat.webhooks import delivery
from chat.webhooks.delivery import deliver_due, trim_deliveries
from chat.webhooks.events import TASK, tell_test, tell_turn_finished
from chat.webhooks.services import create_webhook, renew_secret, try_webhook, update_webhook
from config.celery import app
from config.env import ROOT
from tests.chat.conftest import Chat
from tests.fakes.webhook_program import Program
from tests.other_keys import having
from tests.patience import PATIENCE
from tests.threads import Threads, giving_back
from workspaces.actors import Source
from workspaces.database import database_now
from workspaces.delivery import outbox, sending, webhooks
from workspaces.delivery.outbox import PAUSES
from workspaces.delivery.webhooks import signed_headers
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import Workspace


@pytest.fixture
def secret(chat: Chat, program: Program) -> str:
    """The workspace tells the program of everything."""
    _, made = create_webhook(
        workspace_id=chat.tenant.workspace.pk,
        actor=chat.tenant.actor("owner"),
        url=program.url,
        events=["turn.finished", "approval.wanted"],
    )
    return made


def deliveries(chat: Chat) -> list[WebhookDelivery]:
    return list(WebhookDelivery.objects.for_workspace(chat.tenant.workspace))


def make_due(chat: Chat) -> None:
    rows = WebhookDelivery.objects.for_workspace(chat.tenant.workspace)
    rows.update(next_attempt_at=database_now() - timedelta(seconds=1))


@pytest.mark.both_engines
def test_a_program_hears_of_approvals_and_ends(chat: Chat, program: Program, secret: str) -> None:
    """REL-47: each event once, signed, with ids and states and nothing of what was said."""
    chat.model.call(("counting__plain", {"text": "boom-canary"}))
    chat.send("question-canary")
    chat.watching.turn("waiting_for_approval")
    assert deliver_due() == 1
    stop_turn(turn=chat.calls()[0].turn, actor=chat.actor)
    assert deliver_due() == 1
    assert deliver_due() == 0
    kinds = []
    for headers, body in program.heard:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        assert b"canary" not in body
        kinds.append(
            [row.event for row in deliveries(chat) if str(row.pk) == headers["webhook-id"]]
        )
    assert kinds == [["approval.wanted"], ["turn.finished"]]
    assert {row.status for row in deliveries(chat)} == {"delivered"}


def test_the_page_names_what_events_hold(chat: Chat, program: Program, secret: str) -> None:
    """REL-3212: each key of `data`, of each event that there is, and each state that a turn ends in."""
    page = (ROOT / "docs" / "api.md").read_text()
    rows = dict(re.findall(r"^\| (both of them|`[a-z.]+`) \| (`.+) \|$", page, re.MULTILINE))
    described = {event.value: rows[f"`{event.value}`"] for event in WebhookEvent}
    chat.model.call(("counting__plain", {"text": "x"}))
    chat.send("hello")
    chat.watching.turn("waiting_for_approval")
    stop_turn(turn=chat.calls()[0].turn, actor=chat.actor)
    sent = {row.event: row.payload["data"] for row in deliveries(chat)}
    assert sent.keys() == described.keys()
    ends = {TurnStatus.COMPLETED, *RETRYABLE_TURNS}
    for event, data in sent.items():
        named = set(re.findall(r"`(\w+)`", described[event] + rows["both of them"]))
        assert named == set(data) | (ends if "status" in data else set()), event


def test_a_program_that_asks_for_a_pause_gets_it(chat: Chat, program: Program, secret: str) -> None:
    """REL-2858: its own is longer than ours."""
    program.answers = [429]
    chat.model.say("hello")
    chat.ask()
    assert deliver_due() == 1
    [row] = deliveries(chat)
    assert row.status == "waiting"
    assert row.next_attempt_at > database_now() + timedelta(seconds=800)


def test_what_else_a_yes_says_does_not_matter(chat: Chat, program: Program, secret: str) -> None:
    """REL-2857: the event has arrived, so it is not sent again."""
    program.answers, program.says = [200], b"x" * 200_000
    chat.model.say("hello")
    chat.ask()
    assert deliver_due() == 1
    assert deliveries(chat)[0].status == "delivered"


async def test_a_program_that_hangs_up_is_no_program_out_of_reach() -> None:
    """REL-2857: its owner has to look elsewhere."""

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with webhooks.client() as client:
            with pytest.raises(webhooks.DeliveryRefused, match="closed the connection"):
                await webhooks.post(client, f"http://127.0.0.1:{port}/", b"{}", {})


async def test_a_no_is_one_whatever_else_it_says() -> None:
    """REL-2857: also for who reads the body of a yes. The status and the pause are known before the body."""

    async def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Away\r\nRetry-After: 900\r\nContent-Length: 9\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with webhooks.client() as client:
            with pytest.raises(webhooks.DeliveryRefused, match="status 503") as refused:
                url = f"http://127.0.0.1:{port}/"
                await webhooks.post(client, url, b"{}", {}, reads_answer=True)
    assert refused.value.retry_after == 900


async def test_the_status_of_a_compressed_answer_counts() -> None:
    """REL-2992: nobody asked for compression, and nothing is unpacked. Only who needs the body hears of it."""
    head = b"HTTP/1.1 %d X\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!"
    statuses = [200, 503, 200]

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head % statuses.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        async with webhooks.client() as client:
            assert (await webhooks.post(client, url, b"{}", {})).status_code == 200
            for reason in ("status 503", "compressed"):
                with pytest.raises(webhooks.DeliveryRefused, match=reason):
                    await webhooks.post(client, url, b"{}", {}, reads_answer=True)


def test_a_program_that_redirects_is_not_followed(
    chat: Chat, program: Program, secret: str
) -> None:
    """REL-2854: the owner reads that the address is not the one to enter."""
    program.answers = [308]
    chat.model.say("hello")
    chat.ask()
    assert deliver_due() == 1
    assert len(program.heard) == 1
    assert "status 308. Trellis follows no redirects." in deliveries(chat)[0].last_error


@pytest.mark.both_engines
def test_nothing_is_told_of_what_was_rolled_back(chat: Chat, secret: str) -> None:
    """REL-47: the row is part of the change."""
    chat.model.say("hello")
    turn = chat.ask()
    before = len(deliveries(chat))
    with pytest.raises(RuntimeError), transaction.atomic():
        tell_turn_finished(turn)
        raise RuntimeError
    assert len(deliveries(chat)) == before == 1


@pytest.mark.both_engines
def test_a_program_that_fails_is_tried_again_with_the_same_id(
    chat: Chat, program: Program, secret: str
) -> None:
    """REL-47: with growing pauses, until it is given up."""
    chat.model.say("hello")
    chat.ask()
    program.answers = [500] * (len(PAUSES) + 1)
    for attempt in range(len(PAUSES) + 1):
        make_due(chat)
        assert deliver_due() == 1
        row = deliveries(chat)[0]
        assert row.attempts == attempt + 1
        assert row.last_error == "It answered with status 500."
    assert row.status == "given_up"
    make_due(chat)
    assert deliver_due() == 0
    assert len({headers["webhook-id"] for headers, _ in program.heard}) == 1
    assert len({body for _, body in program.heard}) == 1


def test_an_event_of_a_suspended_workspace_waits_until_that_is_open_again(
    chat: Chat, program: Program, secret: str
) -> None:
    """REL-2613: nothing of it leaves meanwhile, and nothing is lost."""
    chat.model.say("hello")
    chat.ask()
    make_due(chat)
    workspace = Workspace.objects.filter(pk=chat.tenant.workspace.pk)
    workspace.update(is_active=False)
    assert deliver_due() == 0
    workspace.update(is_active=True)
    assert deliver_due() == 1
    assert len(program.heard) == 1


@pytest.mark.both_engines
def test_two_senders_send_an_event_once(chat: Chat, program: Program, secret: str) -> None:
    """REL-25: whoever takes it has it; and whoever dies after that has it sent again, with the same id."""
    chat.model.say("hello")
    chat.ask()
    ends = threading.Barrier(2)

    def send() -> None:
        ends.wait(PATIENCE)
        deliver_due()

    senders = [threading.Thread(target=giving_back(send)) for _ in range(2)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(PATIENCE)
    assert len(program.heard) == 1
    rows = WebhookDelivery.objects.for_workspace(chat.tenant.workspace)
    rows.update(status="waiting")  # as a process leaves it that dies before it notes the answer
    assert deliver_due() == 0
    make_due(chat)
    assert deliver_due() == 1
    assert len({headers["webhook-id"] for headers, _ in program.heard}) == 1


def test_a_program_that_has_gone_is_left_alone(chat: Chat, program: Program, secret: str) -> None:
    """410 is a wish: nothing more is sent."""
    chat.model.say("hello")
    chat.ask()
    program.answers = [410]
    deliver_due()
    row = deliveries(chat)[0]
    assert row.status == "given_up"
    row.refresh_from_db()
    assert not type(row.endpoint).objects.for_workspace(chat.tenant.workspace).get().is_active


def test_a_test_says_what_came_of_it(chat: Chat, program: Program, secret: str) -> None:
    """SEC-34: in plain words, and nothing of the network behind."""
    endpoint = deliveries_endpoint(chat)
    owner = chat.tenant.actor("owner")
    assert try_webhook(endpoint=endpoint, actor=owner).status == "delivered"
    endpoint.url = "http://127.0.0.1:9/"
    endpoint.save()
    failed = try_webhook(endpoint=endpoint, actor=owner)
    assert (failed.status, failed.last_error) == ("given_up", "It could not be reached.")
    old = renew_secret(endpoint=endpoint, actor=owner)
    assert old != secret


@pytest.mark.usefixtures("secret")
def test_a_key_that_is_gone_is_told_and_the_event_waits(chat: Chat, program: Program) -> None:
    """REL-2095: it goes out once the key is back; the reason was that it could not be sent."""
    chat.model.say("hello")
    chat.ask()
    make_due(chat)
    with having():
        deliver_due()
    (waiting,) = deliveries(chat)
    assert (waiting.status, program.heard) == ("waiting", [])
    assert "encryption key" in waiting.last_error
    make_due(chat)
    deliver_due()
    assert deliveries(chat)[0].status == "delivered"


@pytest.mark.usefixtures("secret")
def test_no_worker_sends_a_test_that_is_on_its_way(chat: Chat, program: Program) -> None:
    """SEC-34: whoever asked waits for it, so it comes once."""
    program.let_go.clear()
    endpoint, owner = deliveries_endpoint(chat), chat.tenant.actor("owner")
    with Threads(1) as somebody:
        tried = somebody.submit(try_webhook, endpoint=endpoint, actor=owner)
        assert program.was_heard.wait(PATIENCE)
        assert deliver_due() == 0
        program.let_go.set()
        assert tried.result(PATIENCE).status == "delivered"
    assert (len(program.heard), deliveries(chat)[0].attempts) == (1, 1)


def deliveries_endpoint(chat: Chat) -> Any:
    from chat.models import WebhookEndpoint

    return WebhookEndpoint.objects.for_workspace(chat.tenant.workspace).get()


def test_only_an_owner_sets_webhooks_up_and_the_secret_is_not_on_record(
    chat: Chat, program: Program, secret: str
) -> None:
    """SEC-93, SEC-34: and no address is taken that may not be called."""
    for role in ("admin", "member"):
        with pytest.raises(PermissionDenied):
            create_webhook(
                workspace_id=chat.tenant.workspace.pk,
                actor=chat.tenant.actor(role, Source.API),
                url=program.url,
                events=["turn.finished"],
            )
    for url, events in [
        ("file:///etc", ["turn.finished"]),
        (program.url, ["x"]),
        (program.url, []),
    ]:
        with pytest.raises(InvalidInput):
            create_webhook(
                workspace_id=chat.tenant.workspace.pk,
                actor=chat.tenant.actor("owner"),
                url=url,
                events=events,
            )
    entries = str(list(AuditEntry.objects.for_workspace(chat.tenant.workspace).values()))
    assert "webhookendpoint" in entries.lower().replace(" ", "")
    assert secret not in entries
    assert secret.removeprefix("whsec_") not in entries


@pytest.mark.both_engines
def test_old_deliveries_are_forgotten(chat: Chat, program: Program, secret: str) -> None:
    """What still waits is kept."""
    chat.model.say("hello")
    chat.ask()
    rows = WebhookDelivery.objects.for_workspace(chat.tenant.workspace)
    rows.update(created_at=database_now() - timedelta(days=delivery.KEEP_DAYS + 1))
    assert trim_deliveries() == 0
    deliver_due()
    assert trim_deliveries() == 1


def test_signatures_follow_the_published_scheme() -> None:
    """The example of the specification."""
    headers = signed_headers(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        event_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.both_engines
def test_a_turn_with_no_webhook_asks_once(chat: Chat, django_assert_max_num_queries: Any) -> None:
    """The price of the feature where nobody uses it is one query."""
    chat.model.say("hello")
    turn = Turn.objects.for_workspace(chat.tenant.workspace).fetch(chat.ask().pk)
    with django_assert_max_num_queries(1):
        tell_turn_finished(turn)


def put(endpoint: Any, count: int) -> list[WebhookDelivery]:
    return [tell_test(endpoint) for _ in range(count)]


def another_endpoint(chat: Chat, url: str) -> Any:
    endpoint, _ = create_webhook(
        workspace_id=chat.tenant.workspace.pk,
        actor=chat.tenant.actor("owner"),
        url=url,
        events=["turn.finished"],
    )
    return endpoint


@pytest.mark.both_engines
def test_a_program_that_hangs_holds_up_nobody(
    chat: Chat, program: Program, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-47: whatever has waited longest; and what the others answer is noted at once, not when the slowest is done."""
    hanging = Program(hangs=True)
    monkeypatch.setattr(webhooks, "ANSWER_SECONDS", 60.0)
    endpoint = deliveries_endpoint(chat)
    sender = threading.Thread(target=giving_back(deliver_due))
    try:
        old = put(another_endpoint(chat, hanging.url), sending.SIDE_BY_SIDE + 1)
        new = put(endpoint, 1)[0]
        sender.start()
        assert program.was_heard.wait(PATIENCE)
        while new.status != "delivered":
            assert sender.is_alive()
            new.refresh_from_db()
        assert len(hanging.heard) <= delivery.MOST_PER_ENDPOINT
        tried = {row.pk for row in deliveries(chat) if row.pk != new.pk and row.attempts}
        assert tried == {row.pk for row in old[: delivery.MOST_PER_ENDPOINT]}
    finally:
        hanging.let_go.set()
        if sender.ident is not None:
            sender.join(PATIENCE)
        hanging.stop()


def test_an_event_is_tried_well_within_its_claim() -> None:
    """REL-47: also where nobody answers; otherwise another process would send the same again."""
    assert webhooks.ANSWER_SECONDS <= outbox.CLAIM_SECONDS / 2
    assert delivery.MOST_PER_ENDPOINT < sending.MOST_PER_WORKSPACE < sending.SIDE_BY_SIDE


@pytest.mark.both_engines
def test_processes_that_die_with_an_event_do_so_a_bounded_number_of_times(
    chat: Chat, program: Program, secret: str
) -> None:
    """REL-47: what was never noted is given up too."""
    row = put(deliveries_endpoint(chat), 1)[0]
    rows = WebhookDelivery.objects.for_workspace(chat.tenant.workspace)
    rows.update(attempts=len(PAUSES) + 1)
    assert deliver_due() == 0
    row.refresh_from_db()
    assert (row.status, program.heard) == ("given_up", [])


@pytest.mark.both_engines
@pytest.mark.parametrize("by", ["owner", "program"])
def test_what_waits_for_one_that_is_switched_off_is_given_up(
    chat: Chat, program: Program, secret: str, by: str
) -> None:
    """REL-47: it is not sent when the endpoint is switched on again, and is trimmed."""
    endpoint = deliveries_endpoint(chat)
    owner = chat.tenant.actor("owner")
    later = put(endpoint, 2)[1]
    rows = WebhookDelivery.objects.for_workspace(chat.tenant.workspace)
    if by == "owner":
        update_webhook(endpoint=endpoint, actor=owner, is_active=False)
    else:
        rows.filter(pk=later.pk).update(next_attempt_at=database_now() + timedelta(hours=1))
        program.answers = [410]
        assert deliver_due() == 1
    assert {row.status for row in deliveries(chat)} == {"given_up"}
    update_webhook(endpoint=deliveries_endpoint(chat), actor=owner, is_active=True)
    make_due(chat)
    assert deliver_due() == 0


@pytest.mark.both_engines
def test_a_late_failure_does_not_undo_what_was_given_up(
    chat: Chat, program: Program, secret: str
) -> None:
    """REL-47: an endpoint may be switched off while it is being called."""
    row = put(deliveries_endpoint(chat), 1)[0]
    row.attempts = 1
    delivery.give_up_all(row.workspace_id, row.endpoint_id)
    delivery._note(row, webhooks.DeliveryRefused("It answered with status 500.", status=500))
    row.refresh_from_db()
    assert row.status == "given_up"


def test_a_turn_waits_for_no_broker(chat: Chat, secret: str) -> None:
    """REL-47: the wish to send soon is handed out beside the change, and never waited for."""
    goes_on, was_asked = threading.Event(), threading.Event()
    asked: list[str] = []

    def send(name: str, *args: object, **more: object) -> None:
        if name == TASK:
            asked.append(threading.current_thread().name)
            was_asked.set()
        goes_on.wait(PATIENCE)

    with patch.object(app, "send_task", send):
        try:
            with transaction.atomic():
                chat_turn_told(chat)
            here = threading.current_thread().name
            assert was_asked.wait(PATIENCE)
            assert not goes_on.is_set()
            assert here not in asked
        finally:
            goes_on.set()


def chat_turn_told(chat: Chat) -> None:
    turn = Turn(
        id=uuid7(),
        workspace=chat.tenant.workspace,
        conversation=chat.conversation,
        user_message_id=uuid7(),
        asked_by=chat.tenant.member,
    )
    tell_turn_finished(turn)


@pytest.mark.redis
def test_a_broker_that_hangs_is_not_waited_for_without_end() -> None:
    """REL-47: on no connection to it."""
    options = app.conf.broker_transport_options
    assert 0 < options["socket_connect_timeout"] <= options["socket_timeout"] <= 10
