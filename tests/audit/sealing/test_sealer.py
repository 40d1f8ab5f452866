"""Places, hashes, checkpoints: written once, in order, whole or not at all."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.test import override_settings

from audit import outside_writes
from audit.actions import Action
from audit.models import (
    PLATFORM_CHAIN,
    AuditCheckpoint,
    AuditEntry,
    AuditHead,
    AuditSeal,
    PendingSeal,
)
from audit.proof.records import record_of
from audit.proof.signing import SigningKeyMissing, signing_keys
from audit.proof.trellis_verify import NO_HASH, WHOLE, entry_hash
from audit.sealing import checkpoints, external_checkpoint, sealer, sealing_thread
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.reading import heads, sealed_after
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, record
from audit.verification.online import verify
from tests.audit.sealing.signing_keys import SYSTEM, with_keys
from tests.factories import Tenant, TwoTenants
from tests.patience import PATIENCE, wait_until
from tests.price import counted
from tests.threads import Threads
from workspaces.database import database_now

Kind = AuditCheckpoint.Kind


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "outside" / "checkpoint.json"
    with override_settings(
        TRELLIS=settings.TRELLIS.model_copy(update={"audit_checkpoint_file": path})
    ):
        yield path


def write_entries(tenant: Tenant, count: int, **changes: object) -> list[AuditEntry]:
    return [
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=tenant.actor("member"),
                workspace_id=tenant.workspace.pk,
                details={"number": number},
                **changes,  # type: ignore[arg-type]
            )
        )
        for number in range(count)
    ]


def test_places_are_gapless_and_hashed_with_what_stands_before(tenant: Tenant) -> None:
    """SEC-103: each hash can be computed anew from the rows alone."""
    write_entries(tenant, 5)
    assert seal_pending(most=2).sealed == 2
    assert seal_pending().sealed == 3
    previous = NO_HASH
    rows = sealed_after(tenant.workspace.pk, 0)
    assert [row.seq for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert row.entry is not None
        chain = str(tenant.workspace.pk)
        assert row.hash == entry_hash(chain, row.seq, previous, record_of(row.entry))
        previous = row.hash
    assert heads()[tenant.workspace.pk] == (5, previous)
    assert not PendingSeal.objects.exists()


def test_what_commits_late_is_sealed_late(tenant: Tenant) -> None:
    """Ours: an entry with an older id than what is sealed already gets the next place."""
    first, second = write_entries(tenant, 2)
    late = PendingSeal.objects.get(entry_id=first.pk)
    PendingSeal.objects.filter(pk=late.pk).delete()
    assert seal_pending().sealed == 1
    late.save(force_insert=True)
    assert seal_pending().sealed == 1
    assert [row.entry_id for row in sealed_after(tenant.workspace.pk, 0)] == [second.pk, first.pk]


def test_a_waiting_row_without_entry_holds_nobody_up(tenant: Tenant) -> None:
    """Ours: nor does one that is sealed already."""
    (entry,) = write_entries(tenant, 1)
    PendingSeal.objects.create(entry_id=tenant.workspace.pk)
    PendingSeal.objects.create(entry_id=entry.pk)
    batch = seal_pending()
    assert (batch.sealed, batch.skipped) == (1, 2)
    PendingSeal.objects.create(entry_id=entry.pk)
    assert seal_pending().skipped == 1
    assert AuditSeal.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_failure_before_commit_leaves_nothing(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-41: seals of a process that dies are sealed by the next; here it dies between writing and commit."""
    write_entries(tenant, 3)

    class Killed(BaseException):
        pass

    def die(*_args: object, **_kwargs: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(AuditHead.objects, "bulk_create", die)
        with pytest.raises(Killed):
            seal_pending()
    assert AuditSeal.objects.count() == 0
    assert PendingSeal.objects.count() == 3
    assert seal_pending().sealed == 3
    assert [row.seq for row in sealed_after(tenant.workspace.pk, 0)] == [1, 2, 3]


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_two_sealers_at_once_neither_double_nor_skip(two_workspaces: TwoTenants) -> None:
    """Ours: one lock, so that a chain has one writer."""
    sides = (two_workspaces.a, two_workspaces.b)
    for side in sides:
        write_entries(side, 60)
    start = Barrier(2, timeout=PATIENCE)

    def seal() -> int:
        start.wait()
        done = 0
        while PendingSeal.objects.exists():
            done += seal_pending(most=7).sealed
        return done

    with Threads(2) as threads:
        done = [threads.submit(seal) for _ in range(2)]
        assert sum(work.result(timeout=PATIENCE) for work in done) == 120
    for side in sides:
        assert [row.seq for row in sealed_after(side.workspace.pk, 0)] == list(range(1, 61))


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_who_finds_the_lock_taken_leaves_it_to_the_other(tenant: Tenant) -> None:
    """Ours: nobody waits in the database for a lock."""
    write_entries(tenant, 1)
    with Threads(1) as threads, sealer.sealing_lock() as has_lock:
        assert has_lock
        assert threads.submit(seal_pending).result(timeout=PATIENCE).is_elsewhere
        assert threads.submit(make_checkpoint).result(timeout=PATIENCE) is None
    assert seal_pending().sealed == 1


def test_checkpoints_are_a_gapless_signed_sequence(tenant: Tenant, own_file: Path) -> None:
    """SEC-103: also when nothing happened in between, and with a mark at an orderly end."""
    write_entries(tenant, 2)
    seal_pending()
    first = make_checkpoint()
    empty = make_checkpoint()
    end = make_checkpoint(Kind.END)
    assert first
    assert empty
    assert end
    statements = [json.loads(row.statement) for row in AuditCheckpoint.objects.order_by("number")]
    assert [one["number"] for one in statements] == [1, 2, 3]
    assert [one["kind"] for one in statements] == ["interval", "interval", "end"]
    assert [one["previous"] for one in statements] == [NO_HASH, first.hash, empty.hash]
    assert len(statements[0]["heads"]) == 1
    assert statements[1]["heads"] == {}
    assert str(tenant.workspace.pk) not in first.statement  # other workspaces see the statement
    outside = external_checkpoint.read()
    assert outside is not None
    assert outside.checkpoint == end.hash
    assert json.loads(outside.statement)["heads"] == {
        str(tenant.workspace.pk): list(heads()[tenant.workspace.pk])
    }
    assert verify(actor=SYSTEM).result == WHOLE


def test_when_a_checkpoint_is_due(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: at once, after 5 s with entries, after 1,000 entries, after 60 s without any."""
    assert checkpoints.is_due()
    made = make_checkpoint(only_if_due=True)
    assert made

    def due_after(seconds: float) -> bool:
        moment = made.made_at + timedelta(seconds=seconds)
        monkeypatch.setattr(checkpoints, "database_now", lambda: moment)
        return checkpoints.is_due()

    assert not due_after(59)
    assert due_after(61)
    write_entries(tenant, 1)
    seal_pending()
    assert not due_after(4)
    assert due_after(6)
    monkeypatch.setattr(checkpoints, "MOST_UNSTATED", 1)
    assert due_after(1)
    due_after(2)
    assert make_checkpoint(only_if_due=True)
    assert make_checkpoint(only_if_due=True) is None


def test_a_new_key_is_introduced_by_the_old_one(tenant: Tenant) -> None:
    """SEC-103: a statement signed by both, an entry, and sealing goes on."""
    with with_keys("a"):
        write_entries(tenant, 1)
        seal_pending()
        make_checkpoint()
        old = signing_keys()[0]
    with with_keys("b"), pytest.raises(SigningKeyMissing, match=old.id):
        make_checkpoint()
    with with_keys("b", "a"):
        new = make_checkpoint()
        assert new
        seal_pending()
        assert make_checkpoint()
        assert new.key_id == signing_keys()[0].id
        report = verify(actor=SYSTEM)
        assert (report.result, report.findings) == (WHOLE, [])
    rotation = AuditCheckpoint.objects.get(kind=Kind.ROTATION)
    assert rotation.key_id == old.id
    assert rotation.countersignature
    changed = AuditEntry.objects.across_workspaces().get(action=Action.LOG_KEY_CHANGED.value)
    assert changed.details["from"] == old.fingerprint
    with with_keys("b"):  # the old one can go now
        assert make_checkpoint()
        assert verify(actor=SYSTEM).result == WHOLE


def test_without_a_signing_key_one_is_derived(tenant: Tenant) -> None:
    """Ours: installations made before there was one go on; and change to a key of their own later."""
    with with_keys():
        assert make_checkpoint()
        derived = signing_keys()[0]
    with with_keys("a"):
        assert make_checkpoint()
        assert signing_keys()[0].id != derived.id
        assert verify(actor=SYSTEM).result == WHOLE


def test_a_failed_file_leaves_the_old_one_whole(
    tenant: Tenant, own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-31: a full disk where the file is stops neither sealing nor signing."""
    make_checkpoint()
    before = own_file.read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        make_checkpoint()
    assert own_file.read_text() == before
    monkeypatch.undo()
    make_checkpoint()
    assert external_checkpoint.read().number == 3  # type: ignore[union-attr]


def test_a_round_seals_and_signs(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-41: what a killed process left is sealed by whoever goes round next."""
    outside_writes.sweep()  # what was written to prepare this
    seal_pending()
    sealed, now = AuditSeal.objects.count(), database_now()
    monkeypatch.setattr(checkpoints, "database_now", lambda: now)
    write_entries(tenant, 3)
    sealing_thread.go_round()
    assert AuditSeal.objects.count() == sealed + 3
    assert AuditCheckpoint.objects.count() == 1
    sealing_thread.note_process(Action.LOG_STARTED)
    sealing_thread.go_round()
    assert PLATFORM_CHAIN in heads()
    assert AuditCheckpoint.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_thread_lives_through_failures_and_signs_the_end(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-41: the database goes away and comes back; at the end all is sealed and signed."""
    from threading import Event

    tried, healed = Event(), Event()
    real = sealing_thread.go_round

    def fail_first() -> None:
        if not tried.is_set():
            tried.set()
            raise DatabaseError("away")
        real()
        healed.set()

    monkeypatch.setattr(sealing_thread, "go_round", fail_first)
    monkeypatch.setattr(sealing_thread, "ROUND_SECONDS", 0.01)
    write_entries(tenant, 2)
    sealing_thread.start()
    try:
        assert tried.wait(PATIENCE)
        assert healed.wait(PATIENCE)
    finally:
        sealing_thread.stop(30)
    last = AuditCheckpoint.objects.order_by("-number").first()
    assert last is not None
    assert last.kind == Kind.END
    actions = [row.entry.action for row in sealed_after(PLATFORM_CHAIN, 0) if row.entry]
    assert actions == [Action.LOG_STARTED.value, Action.LOG_STOPPED.value]
    assert verify(actor=SYSTEM).result == WHOLE


def _let_it_rest() -> None:
    """Wait until its last round is over, and until it has asked once whether there is work."""
    thread = sealing_thread._thread
    assert thread is not None
    thread._rests_until = 0.0
    wait_until(lambda: thread._rests_until > time.monotonic(), what="the end of a round")
    with counted() as price:
        thread._asked_at = -math.inf
        wait_until(lambda: sealing_thread._WAITING in price.statements, what="a question")


@pytest.fixture
def resting(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Tenant]:
    """A sealing thread that has sealed what there was; the parameter is how rarely it asks then."""
    monkeypatch.setattr(sealing_thread, "ROUND_SECONDS", 0.05)
    monkeypatch.setattr(sealing_thread, "REST_SECONDS", request.param)
    write_entries(tenant, 2)
    sealing_thread.start()
    try:
        wait_until(AuditCheckpoint.objects.exists, what="the first statement")
        wait_until(lambda: not sealing_thread.something_waits(), what="rest")
        _let_it_rest()
        yield tenant
        write_entries(tenant, 1)
        wait_until(lambda: not PendingSeal.objects.exists(), what="the seal")
    finally:
        sealing_thread.stop(30)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("resting", [0.05], indirect=True)
def test_the_thread_at_rest_asks_one_question_a_round(resting: Tenant) -> None:
    """REL-311: and an entry that is written then is sealed by the next round."""
    with counted() as price:
        began = time.monotonic()
        wait_until(lambda: len(price.statements) >= 10, what="ten questions")
    most_rounds = (time.monotonic() - began) / sealing_thread.ROUND_SECONDS + 2
    assert price.commits == 0
    assert len(price.statements) <= most_rounds, price.in_words()
    assert set(price.statements) == {sealing_thread._WAITING}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("resting", [3600.0], indirect=True)
def test_the_thread_asks_at_once_after_its_process_has_written(resting: Tenant) -> None:
    """REL-352: at rest it asks rarely, and seals what is written here by its next round all the same."""
    with counted() as price:
        time.sleep(0.5)
    assert price.statements == []


def test_numbers_and_texts_that_json_cannot_carry_do_not_stop_sealing(tenant: Tenant) -> None:
    """Ours: what an entry holds must never keep it, and those behind it, unsealed."""
    deep: dict[str, object] = {}
    for _ in range(150):
        deep = {"in": deep}
    record(
        EntryDraft(
            action=Action.CONFIG_CHANGED,
            actor=tenant.actor("owner"),
            workspace_id=tenant.workspace.pk,
            details={"big": 2**70, "small": 0.1, "whole": 1e30, "deep": deep, "𝒳": "\uffff"},
        )
    )
    assert seal_pending().sealed == 1
    assert verify(actor=SYSTEM).result == WHOLE


def test_nested_transactions_do_not_hide_a_rollback(tenant: Tenant) -> None:
    """Ours: an entry whose transaction is rolled back waits for no seal."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        write_entries(tenant, 1)
        _ = 1 / 0
    assert seal_pending().sealed == 0
