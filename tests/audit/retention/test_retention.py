"""What leaves the log: by age, by count, on request; behind signed statements, and never under a hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from uuid_utils.compat import uuid7

from audit import tasks
from audit.bodies import read_body
from audit.models import (
    AuditBody,
    AuditCheckpoint,
    AuditEntry,
    AuditPolicy,
    AuditSeal,
    AuditTombstone,
    LegalHold,
    PendingErasure,
)
from audit.outside_writes import sweep
from audit.policies import DEFAULT
from audit.retention import (
    PolicyChange,
    active_hold,
    apply_retention,
    erase_bodies,
    erasing,
    place_hold,
    release_hold,
    removing,
    what_more_would_go,
)
from audit.retention.erasing import runs_of
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.sealing.tombstones import make_tombstone
from audit.verification.online import verify
from tests.audit.retention.aged_entries import NOW, note, sealed
from tests.audit.tampering import tamper, write_entries
from tests.factories import Tenant, TwoTenants, make_tenant
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("checkpoint_file")]


def keep(tenant: Tenant, **values: int) -> None:
    AuditPolicy.unscoped.create(workspace=tenant.workspace, **values)


def left(tenant: Tenant, entries: list[AuditEntry]) -> list[int]:
    """Which of these entries are still there."""
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    found = set(rows.values_list("pk", flat=True))
    return [number for number, entry in enumerate(entries) if entry.pk in found]


def apply(tenant: Tenant, now: datetime = NOW) -> None:
    apply_retention(tenant.workspace.pk, now=now)
    seal_pending()


def result_of(tenant: Tenant) -> str:
    make_checkpoint(AuditCheckpoint.Kind.INTERVAL)  # whose key signs is known from checkpoints
    report = verify(actor=tenant.actor("owner"), workspace_id=tenant.workspace.pk)
    return report.result if report.result == "whole" else str(report.findings)


def test_what_is_too_old_goes_and_the_rest_still_verifies(tenant: Tenant) -> None:
    """SEC-103: whole ranges from the old end, behind a signed statement; nobody else's log changes."""
    other = make_tenant("other")
    entries, others = sealed(tenant, [40, 35, 31, 20, 1]), sealed(other, [40, 1])
    keep(tenant, keep_days=30)
    apply(tenant)
    assert left(tenant, entries) == [3, 4]
    assert left(other, others) == [0, 1]
    assert AuditBody.objects.for_workspace(tenant.workspace).count() == 2
    (stone,) = AuditTombstone.objects.all()
    assert (stone.chain_id, stone.first_seq, stone.last_seq) == (tenant.workspace.pk, 1, 3)
    assert result_of(tenant) == "whole"
    logged = AuditEntry.objects.for_workspace(tenant.workspace).get(action="retention.applied")
    assert logged.details == {"kind": "entries", "first": 1, "last": 3}
    apply(tenant, NOW + timedelta(days=15))
    assert left(tenant, entries) == [4]
    assert result_of(tenant) == "whole"


def test_a_younger_entry_keeps_what_was_entered_after_it(tenant: Tenant) -> None:
    """Ours: an entry that came late out of the spool does not tear a hole."""
    entries = sealed(tenant, [40, 2, 39])
    keep(tenant, keep_days=30)
    apply(tenant)
    assert left(tenant, entries) == [1, 2]
    assert result_of(tenant) == "whole"


def test_by_count_the_newest_stay(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: several small transactions come to the same end."""
    monkeypatch.setattr("audit.retention.removing.MOST_AT_ONCE", 2)
    entries = sealed(tenant, [1] * 7)
    keep(tenant, keep_entries=3)
    apply_retention(tenant.workspace.pk, now=NOW)
    assert left(tenant, entries) == [4, 5, 6]
    seal_pending()
    assert result_of(tenant) == "whole"


def test_bodies_go_earlier_than_their_entries(tenant: Tenant) -> None:
    """SEC-107: sizes and commitments stay; a body that is gone without a statement is found."""
    entries = sealed(tenant, [10, 9, 1])
    keep(tenant, keep_bodies_days=5, keep_days=100)
    apply(tenant)
    apply(tenant)
    assert left(tenant, entries) == [0, 1, 2]
    rows = [AuditEntry.objects.for_workspace(tenant.workspace).get(pk=e.pk) for e in entries]
    assert [row.result_preview != "" for row in rows] == [False, False, True]
    assert [read_body(row) is not None for row in rows] == [False, False, True]
    assert rows[0].result_commitment == entries[0].result_commitment != ""
    assert AuditTombstone.objects.count() == 1
    assert result_of(tenant) == "whole"
    AuditBody.unscoped.filter(entry_id=entries[2].pk).delete()
    assert result_of(tenant) != "whole"


@pytest.mark.parametrize(
    ("attack", "where"),
    [
        (("audit_auditseal", "audit_auditentry"), 1),  # the oldest one
        (("audit_auditseal", "audit_auditentry"), 3),  # in the midst
        (("audit_auditentry",), 3),
    ],
)
def test_a_hole_is_not_signed_away(
    tenant: Tenant, attack: tuple[str, ...], where: int, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-103: what somebody took out past the triggers stays to be seen; the loss is entered once."""
    entries = sealed(tenant, [40, 39, 38, 37, 36, 1])
    keep(tenant, keep_days=30)
    victim = AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=where).entry_id
    for table in attack:
        column = "entry_id" if table == "audit_auditseal" else "id"
        assert tamper(f"DELETE FROM {table} WHERE {column} = %s", victim) == 1
    for _ in range(2):
        apply(tenant)
    assert len(left(tenant, entries)) == 5
    assert not AuditTombstone.objects.exists()
    losses = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="log.loss")
    assert [(loss.details["first"], loss.details["last"]) for loss in losses] == [(where, where)]
    assert "audit_retention_found_a_hole" in caplog.text
    assert "missing" in result_of(tenant) or "gone" in result_of(tenant)


def test_a_forged_statement_fills_no_hole(tenant: Tenant) -> None:
    """SEC-103: only one that was signed accounts for what is gone."""
    entries = sealed(tenant, [40, 39, 38, 1])
    keep(tenant, keep_days=30)
    victim = AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=2).entry_id
    stone = make_tombstone(
        chain_id=tenant.workspace.pk,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=2,
        last_seq=2,
        reason="retention",
    )
    tamper("UPDATE audit_audittombstone SET signature = %s", "AAAA")
    AuditEntry.unscoped.filter(pk=victim)._raw_delete("default")
    apply(tenant)
    assert len(left(tenant, entries)) == 3
    tamper("UPDATE audit_audittombstone SET signature = %s", stone.signature)
    apply(tenant)
    assert left(tenant, entries) == [3]


def test_without_settings_nothing_ever_goes(tenant: Tenant) -> None:
    """Ours."""
    entries = sealed(tenant, [4000, 1])
    apply(tenant)
    assert left(tenant, entries) == [0, 1]


def test_a_hold_stops_retention_and_erasure(tenant: Tenant) -> None:
    """Ours: placed and released by owners only, each an entry with its reason."""
    entries = sealed(tenant, [40, 1])
    keep(tenant, keep_days=30)
    workspace_id, owner = tenant.workspace.pk, tenant.actor("owner")
    with pytest.raises(PermissionDenied):
        place_hold(workspace_id=workspace_id, reason="mine", actor=tenant.actor("admin"))
    with pytest.raises(InvalidInput):
        place_hold(workspace_id=workspace_id, reason="  ", actor=owner)
    hold = place_hold(workspace_id=workspace_id, reason="Matter 7", actor=owner)
    with pytest.raises(Conflict):
        place_hold(workspace_id=workspace_id, reason="Matter 8", actor=owner)
    assert apply_retention(workspace_id, now=NOW).is_held
    with pytest.raises(Conflict, match="Matter 7"):
        erase_bodies(workspace_id=workspace_id, person_id=tenant.member.pk, reason="r", actor=owner)
    assert left(tenant, entries) == [0, 1]
    release_hold(workspace_id=workspace_id, hold_id=hold.pk, actor=owner)
    assert active_hold(workspace_id) is None
    apply(tenant)
    assert left(tenant, entries) == [1]
    actions = AuditEntry.objects.for_workspace(workspace_id).values_list("action", flat=True)
    assert {"hold.placed", "hold.released"} <= set(actions)


@pytest.mark.parametrize(
    "attempt", ["delete", "empty", "release", "release for another", "rewrite", "place anew"]
)
def test_a_hold_cannot_be_taken_away_by_hand(tenant: Tenant, attempt: str) -> None:
    """SEC-100: the database lets a hold be released once, and what is done past the services is noticed."""
    workspace_id, owner = tenant.workspace.pk, tenant.actor("owner")
    hold = place_hold(workspace_id=workspace_id, reason="Matter 7", actor=owner)
    seal_pending()
    rows = LegalHold.unscoped.filter(pk=hold.pk)
    if attempt == "release":
        rows.update(released_at=NOW)
        sweep()
        last = AuditEntry.objects.for_workspace(workspace_id).filter(action="config.changed")
        assert last.latest("id").details["past_the_services"] is True
        for again in (None, NOW):
            with pytest.raises(DatabaseError), transaction.atomic():
                rows.update(released_at=again, released_by="somebody else")
        return
    with pytest.raises(DatabaseError), transaction.atomic():
        if attempt == "delete":
            rows._raw_delete("default")
        elif attempt == "empty":
            with connection.cursor() as cursor:
                is_postgresql = connection.vendor == "postgresql"
                cursor.execute(
                    "TRUNCATE audit_legalhold" if is_postgresql else "DELETE FROM audit_legalhold"
                )
        elif attempt == "release for another":
            rows.update(released_by="somebody else")
        elif attempt == "rewrite":
            rows.update(reason="nothing", released_at=NOW)
        else:
            rows.update(workspace_id=uuid7(), released_at=NOW)


def test_a_persons_bodies_are_erased_and_only_theirs(tenant: Tenant) -> None:
    """Ours: also of entries that had no seal yet; what happened stays in the log, and the log verifies."""
    mine = [note(tenant), note(tenant)]
    theirs = note(tenant, role="admin")
    mine.append(note(tenant))
    done = erase_bodies(
        workspace_id=tenant.workspace.pk,
        person_id=tenant.member.pk,
        reason="Request 12",
        actor=tenant.actor("owner"),
    )
    assert (done.erased, done.is_done) == (3, True)
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    assert all(rows.get(pk=entry.pk).result_preview == "" for entry in mine)
    assert not AuditBody.unscoped.filter(entry_id__in=[entry.pk for entry in mine]).exists()
    assert read_body(rows.get(pk=theirs.pk)) is not None
    assert rows.get(action="body.erased").details["reason"] == "Request 12"
    seal_pending()
    assert result_of(tenant) == "whole"


def test_an_erasure_that_is_on_record_is_done_whatever_happens(tenant: Tenant) -> None:
    """REL-1391: after a process that ended, and after a legal hold; not of what was entered later."""
    mine = note(tenant)
    workspace_id, owner = tenant.workspace.pk, tenant.actor("owner")
    begun = erase_bodies(
        workspace_id=workspace_id,
        person_id=tenant.member.pk,
        reason="Request 12",
        actor=owner,
        seconds=0,
    )
    assert (begun.erased, begun.is_done) == (0, False)
    later = note(tenant, days_ago=-1)
    hold = place_hold(workspace_id=workspace_id, reason="Matter 7", actor=owner)
    tasks.continue_erasures()
    rows = AuditEntry.objects.for_workspace(workspace_id)
    assert rows.get(pk=mine.pk).result_preview
    assert PendingErasure.unscoped.exists()
    release_hold(workspace_id=workspace_id, hold_id=hold.pk, actor=owner)
    tasks.continue_erasures()
    assert rows.get(pk=mine.pk).result_preview == ""
    assert not AuditBody.unscoped.filter(entry_id=mine.pk).exists()
    assert rows.get(pk=later.pk).result_preview
    assert read_body(rows.get(pk=later.pk)) is not None
    assert not PendingErasure.unscoped.exists()
    assert rows.filter(action="body.erased").count() == 1
    assert result_of(tenant) == "whole"


def test_an_erasure_that_fails_keeps_no_other(
    two_workspaces: TwoTenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1391: it is tried again, and the others are done."""
    for one in (two_workspaces.a, two_workspaces.b):
        note(one)
        erase_bodies(
            workspace_id=one.workspace.pk,
            person_id=one.member.pk,
            reason="r",
            actor=one.actor("owner"),
            seconds=0,
        )
    removed = removing.remove_bodies

    def fails(workspace_id: UUID, *place: Any, **more: Any) -> None:
        if workspace_id == two_workspaces.a.workspace.pk:
            raise DatabaseError
        removed(workspace_id, *place, **more)

    monkeypatch.setattr(erasing, "remove_bodies", fails)
    tasks.continue_erasures()
    left_over = PendingErasure.unscoped.get()
    assert left_over.workspace_id == two_workspaces.a.workspace.pk
    monkeypatch.undo()
    tasks.continue_erasures()
    assert not PendingErasure.unscoped.exists()


@pytest.mark.parametrize(
    ("numbers", "runs"),
    [([], []), ([4], [(4, 4)]), ([1, 2, 3, 7, 9, 10], [(1, 3), (7, 7), (9, 10)])],
)
def test_numbers_become_runs(numbers: list[int], runs: list[tuple[int, int]]) -> None:
    """Ours: one statement for each unbroken run, and none covers what stays."""
    assert runs_of(numbers) == runs


@pytest.mark.parametrize(
    "attempt",
    [
        lambda e: AuditEntry.unscoped.filter(pk=e.pk).update(result_preview="forged"),
        lambda e: AuditEntry.unscoped.filter(pk=e.pk).update(result_preview=""),
        lambda e: AuditEntry.unscoped.filter(pk=e.pk).update(result_preview="", outcome="no"),
        lambda e: AuditEntry.unscoped.filter(pk=e.pk)._raw_delete("default"),
        lambda e: AuditSeal.objects.filter(entry_id=e.pk)._raw_delete("default"),
        lambda e: AuditTombstone.objects.update(first_seq=1),
        lambda e: AuditTombstone.objects.all()._raw_delete("default"),
    ],
)
def test_only_what_a_statement_covers_can_go(
    tenant: Tenant, attempt: Callable[[AuditEntry], object]
) -> None:
    """SEC-100: the database itself refuses everything else, on either engine."""
    keep(tenant, keep_days=30)
    entries = sealed(tenant, [40, 1])
    apply(tenant)
    with pytest.raises(DatabaseError), transaction.atomic():
        attempt(entries[1])


def test_shorter_times_are_asked_about_where_very_many_entries_go_already(tenant: Tenant) -> None:
    """REL-2573: as under a legal hold that has stood for long. Longer times are stored at once there, too."""
    sealed(tenant, [40, 35, 32, 20, 15, 12])
    AuditPolicy.objects.create(workspace=tenant.workspace, keep_days=30)
    for days, is_asked in ((30, False), (14, True), (39, False), (None, False)):
        change = PolicyChange(
            keep_days=days,
            keep_entries=None,
            keep_bodies_days=None,
            body_bytes=DEFAULT.body_bytes,
            masked_paths=(),
            detectors=(),
        )
        goes = what_more_would_go(tenant.workspace.pk, change, now=NOW, most=2)
        assert (goes is not None and goes.is_at_least) is is_asked, days


@pytest.mark.sqlite
def test_on_sqlite_removal_lets_others_write_in_between(tenant: Tenant) -> None:
    """REL-1865: one transaction takes few entries, since nobody else writes meanwhile."""
    write_entries(tenant, 1_100)
    while seal_pending().sealed:
        pass
    keep(tenant, keep_days=30)
    removed = apply_retention(tenant.workspace.pk, now=NOW + timedelta(days=40))
    assert removed.entries == 1_100
    stones = AuditTombstone.objects.order_by("first_seq").values_list("first_seq", "last_seq")
    assert list(stones) == [(1, 500), (501, 1_000), (1_001, 1_100)]
