"""The triggers under the log: dropped, changed, switched off or added ones are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from audit.actions import Action
from audit.alerts.conditions import measure
from audit.models import AlertRule, AuditEntry
from audit.sealing import sealing_thread
from audit.trigger_check import find_faults, restore
from tests.audit.tampering import sealed_log
from tests.audit.verification.checked import check
from tests.factories import Tenant

pytestmark = [pytest.mark.usefixtures("checkpoint_file"), pytest.mark.both_engines]
IS_SQLITE = connection.vendor == "sqlite"
SQLITE = {
    "dropped": "DROP TRIGGER audit_no_delete",
    "dropped of a seal": "DROP TRIGGER audit_seal_no_update",
    "dropped of a hold": "DROP TRIGGER audit_hold_released",
    "changed": "DROP TRIGGER audit_no_update; CREATE TRIGGER audit_no_update BEFORE UPDATE OF actor_label ON"
    " audit_auditentry BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "added": "CREATE TRIGGER lose BEFORE UPDATE ON audit_auditseal BEGIN SELECT RAISE(IGNORE); END",
    "not waiting": "DROP TRIGGER audit_await_seal",
    "losing what waits": "CREATE TRIGGER a_noinsert BEFORE INSERT ON audit_pendingseal BEGIN SELECT RAISE(IGNORE); END",
    "losing what is noted": "CREATE TRIGGER a_noinsert BEFORE INSERT ON audit_outsidewrite"
    " BEGIN SELECT RAISE(IGNORE); END",
}
POSTGRESQL = {
    "dropped": "DROP TRIGGER audit_guard ON audit_auditentry",
    "dropped of a seal": "DROP TRIGGER audit_guard ON audit_auditseal",
    "dropped of a hold": "DROP TRIGGER audit_no_truncate ON audit_legalhold",
    "switched off": "ALTER TABLE audit_auditcheckpoint DISABLE TRIGGER audit_guard",
    "changed": "CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RETURN NULL; END $$",
    "narrowed": "DROP TRIGGER audit_guard ON audit_audittombstone; CREATE TRIGGER audit_guard BEFORE DELETE"
    " ON audit_audittombstone FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "another function": "DROP TRIGGER audit_guard ON audit_auditseal; CREATE TRIGGER audit_guard BEFORE UPDATE OR"
    " DELETE ON audit_auditseal FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "added": "CREATE TRIGGER lose BEFORE UPDATE ON audit_auditseal FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "losing what waits": "CREATE FUNCTION a_noinsert() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN RETURN NULL; END $$; CREATE TRIGGER a_noinsert BEFORE INSERT ON audit_pendingseal FOR EACH ROW"
    " EXECUTE FUNCTION a_noinsert()",
    "losing what is noted": "CREATE TRIGGER a_noinsert BEFORE INSERT ON audit_outsidewrite FOR EACH ROW"
    " EXECUTE FUNCTION audit_refuse()",
    "a rule": "CREATE RULE lose AS ON DELETE TO audit_auditseal DO INSTEAD NOTHING",
    "a session without": "SET LOCAL session_replication_role = replica",
}
ATTACKS = SQLITE if IS_SQLITE else POSTGRESQL


def attack(statements: str) -> None:
    parts = statements.split("; CREATE")
    with connection.cursor() as cursor:
        cursor.execute(parts[0])
        for part in parts[1:]:
            cursor.execute(f"CREATE{part}")


@contextmanager
def own_net_trigger(how: str) -> Iterator[str]:
    """Drop or change one of the triggers that note writes of configuration past the services."""
    with connection.cursor() as cursor:
        if IS_SQLITE:
            cursor.execute(
                "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit_net_%%'"
            )
            name, table, sql = cursor.fetchall()[0]
            cursor.execute(f"DROP TRIGGER {name}")
            if how == "changed":
                cursor.execute(sql.replace("WHERE NOT EXISTS", "WHERE 1 = 2 AND NOT EXISTS"))
        else:
            cursor.execute(
                "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE 'audit_net_%%'"
            )
            name, table = cursor.fetchall()[0]
            verb = "DISABLE TRIGGER" if how == "changed" else ""
            cursor.execute(
                f"ALTER TABLE {table} {verb} {name}" if verb else f"DROP TRIGGER {name} ON {table}"
            )
    yield f"{name} of {table}"


def test_an_untouched_database_has_no_faults(db: None) -> None:
    """SEC-243: what migrations made is what is expected, on both engines."""
    assert find_faults() == []


@pytest.mark.parametrize("name", ATTACKS)
def test_a_changed_trigger_is_found_and_told(
    tenant: Tenant, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-243, SEC-1071: by the verification, and at start with an entry that the alert on the log itself counts."""
    sealed_log(tenant, rounds=1, each=2)
    assert check().result == "whole"
    attack(ATTACKS[name])
    report = check()
    assert report.result == "altered"
    words = "rigger" if name != "a rule" else "rule"
    assert any(words in finding.text for finding in report.findings)
    with pytest.raises(CommandError) as caught:
        call_command("verify_audit", stdout=StringIO())
    assert caught.value.returncode == 1
    sealing_thread.look_at_triggers()
    assert "audit_triggers_changed" in caplog.text
    entry = AuditEntry.unscoped.get(action=Action.LOG_UNGUARDED.value)
    assert entry.details["faults"] == find_faults()
    rule = AlertRule(
        workspace=tenant.workspace, condition=AlertRule.Condition.TAMPERING, window_minutes=5
    )
    assert measure(rule, timezone.now()) >= 1


@pytest.mark.parametrize("how", ["dropped", "changed"])
def test_the_net_under_the_configuration_is_looked_at_too(tenant: Tenant, how: str) -> None:
    """SEC-243: writes past the services would go unnoticed without it."""
    with own_net_trigger(how) as named:
        assert [fault for fault in find_faults() if named in fault]


def test_they_are_made_anew_by_a_command(tenant: Tenant) -> None:
    """SEC-243: with the faults in the log; afterwards the verification finds nothing."""
    sealed_log(tenant, rounds=1, each=2)
    attack(ATTACKS["dropped"])
    attack(ATTACKS["changed"])
    out = StringIO()
    call_command("verify_audit", "--restore-triggers", "--json", stdout=out)
    assert json.loads(out.getvalue())["result"] == "whole"
    assert find_faults() == []
    entry = AuditEntry.unscoped.get(action=Action.LOG_UNGUARDED.value)
    assert entry.details["restored"] is True
    assert restore() == []
