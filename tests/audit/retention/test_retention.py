"""What leaves the log: by age, by count, on request; behind signed statements, and never under a hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit import tasks
from audit.actions import Action, Outcome
from audit.bodies import read_body
from audit.bodies.masking import MOST_PATHS
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
from audit.services import EntryDraft, drafted, write
from audit.verification.online import verify
from config.celery import app
from tests.audit.tampering import tamper, write_entries
from tests.factories import Tenant, TwoTenants, make_tenant
from workspaces.errors import Conflict, InvalidInput, PermissionDenied

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("checkpoint_file")]

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
    entries = [note(tenant, days_ago=age) for age in ages]
    seal_pending()
    return entries


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


def test_the_page_needs_no_queue_for_a_long_erasure(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1391: what is left is on record, so nothing is lost with Redis."""
    note(tenant)

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(app, "send_task", refuse)
    monkeypatch.setattr("celery.app.task.Task.apply_async", refuse)
    monkeypatch.setattr(erasing, "_erase_some", lambda _pending: 0)
    wanted = {"email": tenant.member.email, "reason": "Request 12"}
    answer = tenant.client("owner").post(url(tenant, "erase/"), wanted, follow=True)
    assert "The rest follows in the background." in answer.content.decode()
    assert PendingErasure.unscoped.exists()


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


# The page -------------------------------------------------------------------------------------------------------------


def url(tenant: Tenant, rest: str = "") -> str:
    return f"/w/{tenant.workspace.slug}/audit/settings/{rest}"


VALUES = {
    "keep_days": "90",
    "body_bytes": "65536",
    "masked_paths": "$.arguments.ssn\n",
    "detectors": ["email"],
}


def test_owners_change_the_settings_and_that_is_an_entry(tenant: Tenant) -> None:
    """SEC-105: with what was before and after."""
    owner = tenant.client("owner")
    assert owner.post(url(tenant), VALUES).status_code == 302
    assert owner.post(url(tenant), {**VALUES, "keep_days": "30"}).status_code == 302
    policy = AuditPolicy.objects.for_workspace(tenant.workspace).get()
    assert (policy.keep_days, policy.masked_paths, policy.detectors) == (
        30,
        ["$.arguments.ssn"],
        ["email"],
    )
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    last = changes.latest("id")
    assert (last.details["kind"], last.details["before"], last.details["after"]) == (
        "audit settings",
        {"keep_days": 90},
        {"keep_days": 30},
    )
    page = owner.get(url(tenant)).content.decode()
    assert 'value="30"' in page


def test_the_question_before_an_erasure_names_whom_it_is_for(tenant: Tenant) -> None:
    """REL-3341: the page puts what was typed where the question names its field."""
    page = tenant.client("owner").get(url(tenant)).content.decode()
    [form] = re.findall(r"<form[^>]*/erase/.*?</form>", page, re.S)
    assert "everything {email} did" in form
    assert 'name="email"' in form


def test_auditors_read_the_settings_in_words(tenant: Tenant) -> None:
    """Ours: what they cannot change is no form that looks as if they could."""
    tenant.client("owner").post(url(tenant), VALUES)
    page = tenant.client("auditor").get(url(tenant)).content.decode()
    for words in ("90 days", "as long as their entries", "64 KB", "$.arguments.ssn"):
        assert words in page
    assert "Only owners of the workspace change these." in page
    assert 'name="keep_days"' not in page


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("keep_days", "0", "1 or more"),
        ("keep_entries", "5", "1000 or more"),
        ("masked_paths", "customer.ssn", "is not a path"),
        ("masked_paths", "$.a[?@.b]", "has a filter"),
        ("detectors", "shoe-size", "not one of the available choices"),
        ("body_bytes", "7", "not one of the available choices"),
    ],
)
def test_what_makes_no_sense_is_said_at_the_field(
    tenant: Tenant, field: str, value: str, words: str
) -> None:
    """Ours: and nothing is stored."""
    answer = tenant.client("owner").post(url(tenant), {**VALUES, field: value})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not AuditPolicy.unscoped.exists()


def test_what_the_service_refuses_is_said_at_the_field(tenant: Tenant) -> None:
    """REL-1270."""
    paths = "\n".join(f"$.a{number}" for number in range(MOST_PATHS + 1))
    answer = tenant.client("owner").post(url(tenant), {**VALUES, "masked_paths": paths})
    assert answer.status_code == 422
    assert "paths can be masked" in str(answer.context["policy_form"].errors["masked_paths"])


def test_nothing_is_said_to_go_while_a_hold_stands(tenant: Tenant) -> None:
    """REL-1270: neither when settings are saved, nor where it is asked first, and never while everything is kept."""
    sealed(tenant, [40, 1])
    owner = tenant.client("owner")
    free = owner.post(url(tenant), VALUES, follow=True).content.decode()
    assert "What is kept too long is deleted within the hour." in free
    kept = {**VALUES, "keep_days": "", "keep_entries": "", "keep_bodies_days": ""}
    assert "goes within the hour" not in owner.post(url(tenant), kept, follow=True).content.decode()
    owner.post(url(tenant, "hold/"), {"reason": "Matter 7"})
    values = {**VALUES, "keep_days": "30"}
    asked = owner.post(url(tenant), values).content.decode()
    assert "removed for good as soon as the legal hold is released" in asked
    held = owner.post(url(tenant), {**values, "is_agreed": "1"}, follow=True).content.decode()
    assert "Nothing is removed while the legal hold stands." in held
    assert "within the hour" not in asked + held


def test_shorter_times_are_stored_once_an_owner_has_read_how_much_goes(tenant: Tenant) -> None:
    """REL-2527: in numbers. Settings by which no more goes than before are stored at once."""
    sealed(tenant, [40, 35, 20, 15, 12, 1])
    owner = tenant.client("owner")
    values = {**VALUES, "keep_days": "30", "keep_bodies_days": "10"}
    page = owner.post(url(tenant), values)
    goes = page.context["goes"]
    assert (goes.entries, goes.bodies, goes.is_at_least) == (2, 3, False)
    text = page.content.decode()
    assert "2 entries of the log" in text
    assert "the arguments and results of 3 entries that stay" in text
    assert not AuditPolicy.unscoped.exists()
    given = dict(page.context["hidden"])
    assert owner.post(url(tenant), {**given, "is_agreed": "1"}).status_code == 302
    assert AuditPolicy.objects.for_workspace(tenant.workspace).get().keep_bodies_days == 10
    assert owner.post(url(tenant), {**values, "keep_days": "39"}).status_code == 302
    assert owner.post(url(tenant), {**values, "keep_days": "18"}).context["goes"].entries == 3


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


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("auditor", 200), ("member", 403)])
def test_others_read_or_not_and_change_nothing(tenant: Tenant, role: str, status: int) -> None:
    """SEC-105: auditors cannot write anything."""
    client = tenant.client(role)
    assert client.get(url(tenant)).status_code == status
    assert client.post(url(tenant), VALUES).status_code == 403
    assert client.post(url(tenant, "hold/"), {"reason": "x"}).status_code == 403
    email = tenant.member.email
    assert client.post(url(tenant, "erase/"), {"email": email, "reason": "x"}).status_code == 403
    assert not AuditPolicy.unscoped.exists()
    assert not LegalHold.unscoped.exists()


def test_holds_and_erasure_on_the_page(tenant: Tenant) -> None:
    """Ours: the whole way, with what goes wrong in plain words."""
    entry = note(tenant)
    owner = tenant.client("owner")
    assert owner.post(url(tenant, "hold/"), {"reason": "Matter 7"}).status_code == 302
    again = owner.post(url(tenant, "hold/"), {"reason": "Matter 8"}, follow=True)
    assert "There is a legal hold already." in again.content.decode()
    wanted = {"email": tenant.member.email.upper(), "reason": "Request 12"}
    assert (
        "is in place, so nothing may be erased"
        in owner.post(url(tenant, "erase/"), wanted).content.decode()
    )
    hold = LegalHold.unscoped.get()
    assert owner.post(url(tenant, f"hold/{hold.pk}/release/")).status_code == 302
    other = make_tenant("other")
    note(other)
    for email in ("nobody@example.org", other.member.email):
        nobody = owner.post(url(tenant, "erase/"), {**wanted, "email": email})
        assert "by a person with this address" in nobody.content.decode()
    assert owner.post(url(tenant, "erase/"), wanted).status_code == 302
    row = AuditEntry.objects.for_workspace(tenant.workspace).get(pk=entry.pk)
    assert row.result_preview == ""


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
