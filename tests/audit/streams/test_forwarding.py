"""Streams: sealed entries reach real sinks, in order, at least once, whatever breaks in between."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
import time_machine
from django.db import DataError
from django.utils import timezone
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from starlette.responses import Response

from audit.actions import Action
from audit.models import AuditEntry, AuditStream, StreamCursor, StreamState
from audit.sealing.reading import sealed_after
from audit.streams import claims, forwarding, reading, services
from audit.streams.services import StreamDraft, StreamStart
from tests.audit.streams.receivers import (
    HttpReceiver,
)
from tests.audit.streams.sending import make, make_due, state_of, write
from tests.factories import Tenant, TwoTenants
from tests.patience import PATIENCE
from tests.threads import giving_back
from workspaces import outbound
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import User

pytestmark = pytest.mark.django_db


def received(receiver: HttpReceiver) -> list[dict[str, Any]]:
    return [
        entry
        for _, body in receiver.heard
        for entry in json.loads(body)["entries"]
        if entry["entry"]["action"] == Action.TOOL_CALL_FINISHED.value
    ]


@pytest.mark.both_engines
def test_a_program_gets_signed_batches_in_order(tenant: Tenant, receiver: HttpReceiver) -> None:
    """Batches of JSON with a Standard Webhooks signature; no argument, no result, no preview (SEC-94)."""
    _, secret = make(tenant, receiver.url)
    entries = write(tenant, "a", "b", "c")
    forwarding.send_due()
    assert [entry["uid"] for entry in received(receiver)] == [str(entry.pk) for entry in entries]
    seqs = [entry["seq"] for entry in received(receiver)]
    assert seqs == sorted(seqs)
    assert all(
        entry["hash"] and entry["entry"]["arguments_commitment"] for entry in received(receiver)
    )
    headers, body = receiver.heard[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert b"canary" not in body
    assert forwarding.send_due() == 0, "nothing is sent twice when all goes well"


@pytest.mark.both_engines
def test_a_batch_without_a_yes_is_sent_again_with_the_same_uids(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    """REL-47: the cursor moves after the sink's yes only."""
    stream, _ = make(tenant, receiver.url)
    before = dict(StreamCursor.objects.values_list("chain_id", "seq"))
    write(tenant, "a", "b")
    receiver.answers = [Response(status_code=503)]
    assert forwarding.send_due() == 0
    assert dict(StreamCursor.objects.values_list("chain_id", "seq")) == before
    state = state_of(stream)
    assert state.failures == 1
    assert state.last_error == "It answered with status 503."
    assert state.next_attempt_at is not None
    first = received(receiver)
    assert forwarding.send_due() == 0, "it waits for its pause to end"
    assert len(received(receiver)) == len(first)
    make_due(stream)
    forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [e["uid"] for e in first] * 2
    state = state_of(stream)
    assert (state.failures, state.last_error, state.next_attempt_at) == (0, "", None)


@pytest.mark.both_engines
def test_a_process_that_dies_after_the_yes_sends_the_batch_again(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    """REL-41, REL-47: between the sink's yes and the note of it a process may die; nothing is left out."""
    make(tenant, receiver.url)
    (entry,) = write(tenant, "a")

    class Killed(BaseException):
        pass

    with (
        patch.object(claims, "note_taken", side_effect=Killed),
        patch.object(claims, "release"),  # a dead process releases nothing
        pytest.raises(Killed),
    ):
        forwarding.send_due()
    assert forwarding.send_due() == 0, "until its claim ends, nobody else sends"
    StreamState.objects.update(claimed_until=database_now() - timedelta(seconds=1))
    forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [str(entry.pk)] * 2


@pytest.mark.both_engines
def test_two_processes_do_not_send_side_by_side(tenant: Tenant, receiver: HttpReceiver) -> None:
    """The claim of one keeps the other out, and what it notes without a claim does not count."""
    stream, _ = make(tenant, receiver.url)
    write(tenant, "a")
    mine = claims.claim(stream)
    assert mine is not None
    assert claims.claim(stream) is None
    assert forwarding.send_due() == 0
    assert receiver.heard == []
    services.start_over(stream=stream, actor=tenant.actor("owner"), start=StreamStart.NOW)
    assert not claims.note_taken(
        stream, mine, chain_id=tenant.workspace.pk, upto=1, sent=1, refused=0
    )


def test_pauses_grow_and_a_sink_may_ask_for_longer(tenant: Tenant, receiver: HttpReceiver) -> None:
    stream, _ = make(tenant, receiver.url)
    pauses = []
    for _ in range(12):
        mine = claims.claim(stream)
        assert mine is not None
        now = database_now()
        claims.note_failure(stream, mine, message="no", retry_after=None)
        next_at = state_of(stream).next_attempt_at
        assert next_at is not None
        pauses.append((next_at - now).total_seconds())
        claims.release(stream, mine)
    assert 4 <= pauses[0] <= 7
    assert all(later > earlier for earlier, later in pairwise(pauses[:6]))
    assert max(pauses) <= claims.LONGEST_PAUSE_SECONDS * 1.2 + 1
    make_due(stream)
    write(tenant, "a")
    receiver.answers = [Response(status_code=429, headers={"retry-after": "1800"})]
    StreamState.objects.update(failures=0)
    now = database_now()
    forwarding.send_due()
    next_at = state_of(stream).next_attempt_at
    assert next_at is not None
    assert (next_at - now).total_seconds() >= 1799


def test_it_is_known_since_when_a_sink_fails(tenant: Tenant, receiver: HttpReceiver) -> None:
    """REL-2092: the first failure since the last success, and the last of all."""
    stream, _ = make(tenant, receiver.url)
    assert (state_of(stream).failing_since, state_of(stream).last_failed_at) == (None, None)
    receiver.answers = [Response(status_code=500), Response(status_code=500)]
    began = database_now()
    write(tenant, "a")
    forwarding.send_due()
    first = state_of(stream)
    assert first.failing_since is not None
    assert began <= first.failing_since == first.last_failed_at
    make_due(stream)
    forwarding.send_due()
    second = state_of(stream)
    assert (second.failures, second.failing_since) == (2, first.failing_since)
    assert second.last_failed_at is not None
    assert second.last_failed_at > first.failing_since
    make_due(stream)
    forwarding.send_due()
    mended = state_of(stream)
    assert (mended.failures, mended.failing_since) == (0, None)
    assert mended.last_failed_at == second.last_failed_at


@pytest.mark.both_engines
def test_a_sink_that_is_away_holds_up_no_other(tenant: Tenant, receiver: HttpReceiver) -> None:
    make(tenant, "http://127.0.0.1:9999/")
    make(tenant, receiver.url)
    write(tenant, "a")
    forwarding.send_due()
    assert len(received(receiver)) == 1
    away = StreamState.objects.exclude(failures=0).get()
    assert away.last_error == "It could not be reached."


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_a_sink_that_hangs_keeps_no_other_waiting(
    two_workspaces: TwoTenants, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1382: another workspace's stream is let go at once, and is sent for again, while one round still waits."""
    monkeypatch.setattr(forwarding, "SEND_SECONDS", PATIENCE)
    monkeypatch.setattr(forwarding, "_LOOK_SECONDS", 0.1)
    hanging = HttpReceiver(hangs=True)
    make(two_workspaces.a, hanging.url)
    quick, _ = make(two_workspaces.b, receiver.url)
    write(two_workspaces.a, "slow")
    write(two_workspaces.b, "first")
    sender = threading.Thread(target=giving_back(forwarding.send_due))
    sender.start()
    try:
        _until(lambda: len(received(receiver)) == 1)
        _until(lambda: StreamState.objects.get(stream=quick).claim is None)
        write(two_workspaces.b, "second")
        _until(lambda: len(received(receiver)) == 2)
        assert sender.is_alive()
    finally:
        hanging.stop()
        sender.join(PATIENCE)
    assert not StreamState.objects.exclude(claim=None).exists()


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.both_engines
def test_those_with_nothing_to_send_keep_no_other_from_its_turn(
    two_workspaces: TwoTenants, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are, and however long ago they sent last."""
    quiet, _ = make(two_workspaces.a, receiver.url)
    make(two_workspaces.b, receiver.url)
    forwarding.send_due()
    StreamState.objects.filter(stream=quiet).update(last_sent_at=None)
    monkeypatch.setattr(forwarding, "MOST_STREAMS", 1)
    write(two_workspaces.b, "busy")
    forwarding.send_due()
    assert [entry["entry"]["tool_name"] for entry in received(receiver)] == ["busy"]


@pytest.mark.both_engines
def test_batches_are_bounded(tenant: Tenant, receiver: HttpReceiver) -> None:
    make(tenant, receiver.url)
    with patch.object(reading, "MOST_ENTRIES", 2):
        entries = write(tenant, *"abcde")
        forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [str(e.pk) for e in entries]
    assert all(len(json.loads(body)["entries"]) <= 2 for _, body in receiver.heard)
    receiver.heard.clear()
    with patch.object(reading, "MOST_BYTES", 10):
        write(tenant, *"fg")
        forwarding.send_due()
    assert [len(json.loads(body)["entries"]) for _, body in receiver.heard] == [1, 1]


@pytest.mark.both_engines
def test_a_stream_starts_from_now_or_from_the_beginning(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    (old,) = write(tenant, "old")
    stream, _ = make(tenant, receiver.url, start=StreamStart.NOW)
    (new,) = write(tenant, "new")
    forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [str(new.pk)]
    services.start_over(stream=stream, actor=tenant.actor("owner"), start=StreamStart.BEGINNING)
    receiver.heard.clear()
    forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [str(old.pk), str(new.pk)]


@pytest.mark.both_engines
def test_a_paused_stream_sends_nothing_and_then_goes_on(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    stream, _ = make(tenant, receiver.url)
    services.pause_stream(stream=stream, actor=tenant.actor("owner"), is_paused=True)
    write(tenant, "a")
    assert forwarding.send_due() == 0
    lag = reading.lag_of(stream)
    assert lag.entries >= 1
    with time_machine.travel(timezone.now() + timedelta(minutes=31)):
        page = tenant.client("owner").get(f"/w/{tenant.workspace.slug}/audit/streams/")
    assert "waiting, the oldest from 31\xa0minutes ago" in page.content.decode()
    services.pause_stream(stream=stream, actor=tenant.actor("owner"), is_paused=False)
    forwarding.send_due()
    assert len(received(receiver)) == 1
    assert reading.lag_of(stream).entries == 0


@pytest.mark.both_engines
def test_a_workspace_is_sent_its_own_log_and_the_platform_all(
    two_workspaces: TwoTenants, superuser: User, receiver: HttpReceiver
) -> None:
    """SEC-01: a workspace's stream knows no other workspace."""
    a, b = two_workspaces.a, two_workspaces.b
    make(a, receiver.url)
    (mine,) = write(a, "mine")
    (theirs,) = write(b, "theirs")
    forwarding.send_due()
    assert [e["uid"] for e in received(receiver)] == [str(mine.pk)]
    receiver.heard.clear()
    AuditStream.objects.across_workspaces().delete()
    actor = Actor(
        kind=a.actor("owner").kind,
        label=superuser.email,
        source=Source.WEB,
        user_id=superuser.pk,
        is_superuser=True,
    )
    services.create_stream(
        workspace_id=None,
        actor=actor,
        kind="webhook",
        draft=StreamDraft(name="all", target=receiver.url),
        start=StreamStart.BEGINNING,
    )
    forwarding.send_due()
    assert {e["uid"] for e in received(receiver)} == {str(mine.pk), str(theirs.pk)}
    chains = {UUID(e["chain"]) for _, body in receiver.heard for e in json.loads(body)["entries"]}
    assert {a.workspace.pk, b.workspace.pk} <= chains


def test_a_collector_gets_log_records(tenant: Tenant, receiver: HttpReceiver) -> None:
    """OTLP logs over HTTP, protobuf; what a collector refuses of a batch is not sent again."""
    stream, _ = make(tenant, receiver.url, "otlp", headers={"X-Api-Key": "sesame"})
    trace = "0af7651916cd43dd8448eb211c80319c"
    (entry,) = write(tenant, "a", trace_id=trace)
    partial = ExportLogsPartialSuccess(rejected_log_records=1, error_message="too old")
    receiver.answers = [
        Response(
            ExportLogsServiceResponse(partial_success=partial).SerializeToString(),
            media_type="application/x-protobuf",
        )
    ]
    forwarding.send_due()
    headers, body = receiver.heard[0]
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["x-api-key"] == "sesame"
    logs = ExportLogsServiceRequest.FromString(body).resource_logs[0].scope_logs[0].log_records
    found = next(log for log in logs if log.event_name == "trellis.audit.tool_call.finished")
    attributes = {a.key: a.value for a in found.attributes}
    assert attributes["log.record.uid"].string_value == str(entry.pk)
    assert attributes["trellis.tool_name"].string_value == "a"
    assert found.trace_id.hex() == trace
    assert abs(found.time_unix_nano - entry.created_at.timestamp() * 1e9) < 1e6
    assert state_of(stream).refused == 1
    assert forwarding.send_due() == 0


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "answer",
    [
        b'{"partialSuccess": {"rejectedLogRecords": "%d"}}' % 10**30,
        b'{"partialSuccess": {"rejectedLogRecords": 1e999}}',
        b'{"partialSuccess": ' + b"[" * 20_000,
        b'{"partialSuccess": {"rejectedLogRecords": -5}}',
    ],
)
def test_no_answer_of_a_collector_ends_the_round_for_others(
    two_workspaces: TwoTenants, receiver: HttpReceiver, answer: bytes
) -> None:
    """SEC-648: it counts what it was sent at most, and a number that nothing holds is one stream's trouble."""
    collector = HttpReceiver()
    try:
        theirs, _ = make(two_workspaces.a, collector.url, "otlp")
        make(two_workspaces.b, receiver.url)
        collector.answers = [Response(answer, media_type="application/json") for _ in range(3)]
        write(two_workspaces.a, "a")
        write(two_workspaces.b, "b")
        forwarding.send_due()
        forwarding.send_due()
        assert [one["entry"]["tool_name"] for one in received(receiver)][-1] == "b"
        state = state_of(theirs)
        assert (state.failures, state.claim) == (0, None)
        assert 0 <= state.refused <= state.sent
    finally:
        collector.stop()


@pytest.mark.both_engines
def test_what_cannot_be_noted_of_one_stream_ends_no_round(
    two_workspaces: TwoTenants, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-648: the others go on, and the one is let go."""
    broken, _ = make(two_workspaces.a, receiver.url)
    make(two_workspaces.b, receiver.url)
    note = claims.note_taken

    def refuse(stream: AuditStream, *args: Any, **more: Any) -> bool:
        if stream.pk == broken.pk:
            raise DataError("out of range")
        return note(stream, *args, **more)

    monkeypatch.setattr(claims, "note_taken", refuse)
    write(two_workspaces.a, "a")
    write(two_workspaces.b, "b")
    forwarding.send_due()
    assert StreamState.objects.exclude(stream=broken).get().sent > 0
    assert (state_of(broken).failures, state_of(broken).claim) == (1, None)


def test_the_test_button_says_what_came_of_it(tenant: Tenant, receiver: HttpReceiver) -> None:
    """SEC-34: a class of failure, and no text of the other side."""
    stream, _ = make(tenant, receiver.url)
    owner = tenant.actor("owner")
    assert services.try_stream(stream=stream, actor=owner) == ""
    assert json.loads(receiver.heard[0][1])["entries"][0]["entry"] == {"action": "stream.test"}
    receiver.answers = [Response("internal banner", status_code=500)]
    assert services.try_stream(stream=stream, actor=owner) == "It answered with status 500."


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("webhook", "https://10.0.0.1/"),
        ("otlp", "https://169.254.169.254/latest"),
        ("syslog", "192.168.1.1:6514"),
    ],
)
def test_private_networks_stay_closed(tenant: Tenant, kind: str, target: str) -> None:
    """SEC-27, SEC-28: all three kinds leave by the one door, and say which setting would open it."""
    stream, _ = make(tenant, target, kind)
    fault = services.try_stream(stream=stream, actor=tenant.actor("owner"))
    assert fault == outbound.NETWORK_REFUSED


def test_settings_are_checked_and_secrets_go_in_only(
    tenant: Tenant, receiver: HttpReceiver
) -> None:
    """SEC-93: what was entered as a secret is in no entry of the log."""
    stream, secret = make(tenant, receiver.url, headers={"X-Key": "canary-header"})
    for kind, target in [("webhook", "ftp://x/"), ("syslog", "host:99"), ("otlp", "nonsense")]:
        with pytest.raises(InvalidInput):
            make(tenant, target, kind)
    with pytest.raises(InvalidInput):
        make(tenant, receiver.url, headers={"Host": "x"})
    with pytest.raises(InvalidInput):
        make(tenant, "127.0.0.1:6514", "syslog", ca_certificates="no certificate")
    with pytest.raises(PermissionDenied):
        services.delete_stream(stream=stream, actor=tenant.actor("admin"))
    moved = StreamDraft(name="sink", target="https://elsewhere.example.org/")
    with pytest.raises(InvalidInput):
        services.update_stream(stream=stream, actor=tenant.actor("owner"), draft=moved)
    services.renew_secret(stream=stream, actor=tenant.actor("owner"))
    for _ in range(services.MOST_STREAMS - 1):
        make(tenant, receiver.url)
    with pytest.raises(Conflict):
        make(tenant, receiver.url)
    services.delete_stream(stream=stream, actor=tenant.actor("owner"))
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    shown = json.dumps([entry.details for entry in entries])
    assert entries.count() == services.MOST_STREAMS + 2
    assert "canary-header" not in shown
    assert secret not in shown


@pytest.mark.both_engines
def test_what_retention_removed_is_stepped_over(tenant: Tenant, receiver: HttpReceiver) -> None:
    stream, _ = make(tenant, receiver.url)
    write(tenant, "a", "b")
    real = sealed_after

    def without_the_first(chain_id: UUID, seq: int, most: int) -> Any:
        found = real(chain_id, seq, most=most)
        return [type(s)(s.seq, s.hash, s.entry_id, None) if s is found[0] else s for s in found]

    with patch.object(reading, "sealed_after", without_the_first):
        forwarding.send_due()
    assert reading.lag_of(stream).entries == 0
