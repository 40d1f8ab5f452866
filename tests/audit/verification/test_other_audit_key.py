"""What is said of a log that was written under another TRELLIS_AUDIT_KEY."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, override_settings
from pydantic import SecretStr

from audit import outside_writes
from audit.actions import Action
from audit.errors import OtherLogKey
from audit.models import AuditCheckpoint, AuditEntry, AuditSeal, PendingSeal
from audit.proof import marks
from audit.proof.trellis_verify import WHOLE
from audit.retention import erase_bodies
from audit.sealing import sealer, sealing_thread
from audit.sealing.checkpoints import make_checkpoint
from audit.services import EntryDraft, record
from audit.verification.nightly import verify_log
from audit.verification.online import verify
from config.doctor import DoctorFinding, FindingState, examine_part
from config.management.commands.up import Command
from tests.factories import Tenant
from tests.patience import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]


def other_key() -> override_settings:
    key = SecretStr(base64.b64encode(bytes(range(32))).decode())
    return override_settings(TRELLIS=settings.TRELLIS.model_copy(update={"audit_key": key}))


def write(tenant: Tenant, number: int) -> None:
    for _ in range(number):
        record(
            EntryDraft(
                action=Action.AUTH_SIGNED_IN,
                actor=tenant.actor("member"),
                workspace_id=tenant.workspace.pk,
            )
        )


def looked() -> DoctorFinding:
    return examine_part("seals")


def test_another_key_is_told(tenant: Tenant) -> None:
    """REL-2096: the doctor and `up`; with the key of before, all is well again."""
    assert not marks.is_key_other()
    write(tenant, 3)
    assert looked().state is FindingState.OK
    with other_key():
        found = looked()
        assert (found.state, found.text) == (FindingState.FAILED, marks.OTHER_KEY)
        assert "Put the log's key back" in found.advice
        errors = io.StringIO()
        with patch("config.management.commands.up.call_command"):
            Command(stdout=io.StringIO(), stderr=errors)._prepare("127.0.0.1", wants_demo=False)
        assert f"Warning: {marks.OTHER_KEY}." in errors.getvalue()
    assert looked().state is FindingState.OK


@pytest.mark.usefixtures("checkpoint_file")
def test_a_process_with_another_key_is_not_ready(
    tenant: Tenant, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-2405: what it writes would look altered for good. Others serve, and its own log says why."""

    def looked_at() -> tuple[int, str]:
        answer = client.get("/readyz")
        sealing_thread.look_at_key()
        return answer.status_code, answer.json()["checks"]["log_key"]

    write(tenant, 3)
    assert looked_at() == (200, "ok")  # no checkpoint states a key yet
    sealer.seal_pending()
    assert make_checkpoint() is not None
    assert looked_at() == (200, "ok")
    assert "audit_key_is_another" not in caplog.text
    with other_key():
        assert looked_at() == (503, "failed")
        assert "audit_key_is_another" in caplog.text
    assert looked_at() == (200, "ok")


@pytest.mark.usefixtures("checkpoint_file")
@pytest.mark.parametrize(
    "verifies",
    [
        lambda: verify_log(is_incremental=True),
        lambda: call_command("verify_audit", stdout=io.StringIO()),
    ],
)
def test_a_process_with_another_key_calls_no_log_altered(
    tenant: Tenant, verifies: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """REL-2594: a worker may have it. It says which key is wrong, and leaves the log as it is."""
    write(tenant, 3)
    sealer.seal_pending()
    assert make_checkpoint() is not None
    write(tenant, 2)
    with other_key():
        try:
            verifies()
        except CommandError as error:
            words = str(error)
        else:
            words = str(vars(caplog.records[-1]))
        with pytest.raises(OtherLogKey):
            sealer.seal_pending()
    assert "The log has another TRELLIS_AUDIT_KEY than this process" in words
    assert "Put the log's key back" in words
    entries = AuditEntry.objects.across_workspaces()
    assert not entries.filter(action__in=[Action.LOG_VERIFIED, Action.LOG_INTRUSION]).exists()
    assert PendingSeal.objects.count() == 2
    verify_log(is_incremental=False)
    verified = entries.get(action=Action.LOG_VERIFIED)
    assert verified.details["result"] == WHOLE


@pytest.mark.usefixtures("checkpoint_file")
def test_a_process_with_another_key_seals_nothing_when_it_ends(
    tenant: Tenant, transactional_db: None
) -> None:
    """REL-2504: it says that the log stops in it, and leaves what waits to others."""
    write(tenant, 3)
    sealer.seal_pending()
    assert make_checkpoint() is not None
    newest = AuditCheckpoint.objects.latest("number")
    write(tenant, 2)
    with other_key():
        sealing_thread.start()
        sealing_thread.stop(PATIENCE)
    entries = AuditEntry.objects.across_workspaces()
    assert entries.filter(action=Action.LOG_STOPPED).exists()
    assert not entries.filter(action=Action.LOG_INTRUSION).exists()
    assert PendingSeal.objects.count() >= 2
    assert AuditCheckpoint.objects.latest("number") == newest


@pytest.mark.usefixtures("checkpoint_file")
def test_a_process_with_another_key_refuses_nothing_that_others_wrote(tenant: Tenant) -> None:
    """REL-2504: it leaves sealing to them, or each side would refuse the other's entries, and its alarms."""
    outside_writes.sweep()  # what was written to prepare this
    write(tenant, 3)
    sealer.seal_pending()
    assert make_checkpoint() is not None
    write(tenant, 2)
    with other_key():
        sealing_thread.go_round()
    assert PendingSeal.objects.count() == 2
    sealing_thread.go_round()
    assert AuditSeal.objects.count() == AuditEntry.objects.across_workspaces().count()


@pytest.mark.usefixtures("checkpoint_file")
def test_tasks_of_a_process_with_another_key_refuse_nothing_either(tenant: Tenant) -> None:
    """REL-2574: a verification seals what was refused, and an erasure what waits; there, both leave it to others."""
    outside_writes.sweep()
    write(tenant, 3)
    sealer.seal_pending()
    assert make_checkpoint() is not None
    with other_key():
        write(tenant, 2)
    sealer.seal_pending()  # refuses those two
    write(tenant, 1)
    waiting = set(PendingSeal.objects.values_list("entry_id", flat=True))
    owner = tenant.actor("owner")
    with other_key():
        sealer.seal_refused()
        erase_bodies(
            workspace_id=tenant.workspace.pk, person_id=tenant.member.pk, reason="x", actor=owner
        )
    assert waiting <= set(PendingSeal.objects.values_list("entry_id", flat=True))


def test_entries_under_both_keys_are_told_under_either(tenant: Tenant) -> None:
    """REL-2096: a key that came back does not fit what was written meanwhile."""
    write(tenant, 3)
    with other_key():
        write(tenant, 25)
        assert looked().text == marks.OTHER_KEY
    assert looked().text == marks.OTHER_KEY


def test_what_waited_for_its_seal_when_the_key_changed_is_sealed_once_it_is_back(
    tenant: Tenant,
) -> None:
    """REL-2096: it was refused for good, as if somebody else had written it."""
    write(tenant, 1)
    sealer.seal_pending()
    write(tenant, 2)  # and the process ends before they are sealed
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action=Action.AUTH_SIGNED_IN.value
    )
    waiting = list(rows.order_by("-pk")[:2])
    with other_key():
        sealer.seal_pending()
        assert AuditSeal.objects.filter(entry_id__in=[one.pk for one in waiting]).count() == 0
        assert not PendingSeal.objects.filter(entry_id__in=[one.pk for one in waiting]).exists()
        assert sealer.seal_again() == 0
    assert sealer.seal_again() == 2
    assert sealer.seal_again() == 0
    sealer.seal_pending()
    assert AuditSeal.objects.filter(entry_id__in=[one.pk for one in waiting]).count() == 2


def test_refused_entries_are_told_before_the_next_verification(tenant: Tenant) -> None:
    """REL-2482: the doctor called the seals well under the right key, while another process wrote under another."""
    write(tenant, 3)
    sealer.seal_pending()
    with other_key():
        write(tenant, 2)
        waiting = [one.entry_id for one in PendingSeal.objects.all()]
    write(tenant, 3)
    sealer.seal_pending()
    found = looked()
    assert (found.state, found.text.split()[0]) == (FindingState.FAILED, "2")
    assert "verify_audit" in found.advice
    with other_key():
        assert sealer.seal_again() == len(waiting)
    assert looked().state is FindingState.OK


def test_entries_that_are_refused_while_the_log_is_verified_are_told(tenant: Tenant) -> None:
    """REL-2593: that verification had looked for such entries already, and said that all was whole."""
    write(tenant, 3)
    sealer.seal_pending()
    assert make_checkpoint() is not None
    was_at: list[str] = []

    def refuse_some(execute: Any, sql: str, *rest: Any) -> Any:
        is_look_for_triggers = "pg_trigger" in sql or "sqlite_master" in sql
        if is_look_for_triggers and not was_at:
            was_at.append(sql)
            with other_key():
                write(tenant, 2)
            sealer.seal_pending()
        return execute(sql, *rest)

    with connection.execute_wrapper(refuse_some):
        report = verify(actor=tenant.actor("member"))
    assert was_at
    assert report.result == WHOLE, report.findings
    found = looked()
    assert (found.state, found.text.split()[0]) == (FindingState.FAILED, "2")


@pytest.mark.parametrize("entries", [5, "all", [{"id": 1}, 7, None, ["a"]]])
def test_an_alarm_that_names_no_entries_keeps_nobody_from_verifying(
    tenant: Tenant, entries: object
) -> None:
    """REL-2096: somebody may write one past Trellis, or alter one."""
    record(
        EntryDraft(
            action=Action.LOG_INTRUSION,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
            details={"entries": entries},
        )
    )
    assert sealer.seal_again() == 0


def test_however_many_waited_for_their_seal_they_are_sealed(tenant: Tenant) -> None:
    """REL-2096: an alarm names all that one batch refused, and they are looked at piece by piece."""
    write(tenant, 250)
    with other_key():
        sealer.seal_pending()
    with patch.object(sealer, "_AT_ONCE", 100):
        assert sealer.seal_again() == 250


def test_one_entry_that_was_altered_is_no_other_key(tenant: Tenant) -> None:
    """REL-2096: that is what verification is for."""
    write(tenant, 3)
    first = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk").first()
    with patch.object(marks, "is_marked", lambda one, is_demanded: one != first):
        assert not marks.is_key_other()


def test_verification_says_that_the_key_is_another(tenant: Tenant) -> None:
    """REL-2096: it only said of each entry that Trellis had not written it."""
    write(tenant, 3)
    sealer.seal_pending()
    with other_key(), pytest.raises(CommandError, match="another TRELLIS_AUDIT_KEY"):
        call_command("verify_audit", stdout=io.StringIO())
