"""manage.py audit_selfcheck: the log's account of calls whose fate is known."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from audit import trigger_check
from audit.models import AuditEntry
from mcp_servers.models import McpServer, StdioProgram
from workspaces.models import User, Workspace

pytestmark = pytest.mark.django_db(transaction=True)


def run() -> dict[str, Any]:
    out = StringIO()
    code = 0
    try:
        call_command("audit_selfcheck", "--json", stdout=out)
    except CommandError as error:
        code = error.returncode
    output = dict(json.loads(out.getvalue()))
    assert code == (0 if output["is_good"] else 1)
    return output


def test_a_sound_installation_passes_and_only_the_log_is_left() -> None:
    """SEC-102, SEC-103, SEC-104: each call is told from the others, in order, sealed, and accounted for."""
    report = run()
    assert report["is_good"], report
    assert report["verification"] == "whole"
    assert (report["let_through"], report["seen_by_server"]) == (8, 7)
    assert {call["source"] for call in report["calls"]} >= {"chat", "api", "web", "task", "command"}
    assert AuditEntry.objects.for_workspace(report["workspace"]).exists()
    assert not Workspace.objects.exists()
    assert not User.objects.exists()
    assert not McpServer.objects.across_workspaces().exists()
    assert not StdioProgram.objects.filter(slug__startswith="selfcheck").exists()


def test_a_trigger_that_was_dropped_is_found() -> None:
    """SEC-243: whether the log tells the truth rests on them."""
    with connection.schema_editor() as editor:
        on = "" if connection.vendor == "sqlite" else " ON audit_auditcheckpoint"
        name = "audit_auditcheckpoint_no_update" if not on else "audit_guard"
        editor.execute(f"DROP TRIGGER {name}{on}")
    try:
        report = run()
    finally:
        trigger_check.restore()
    assert not report["is_good"]
    assert f"The trigger {name} of audit_auditcheckpoint is missing." in " ".join(report["faults"])


def test_a_door_that_records_no_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-102: a call that the server saw and whose end the log does not have."""
    monkeypatch.setattr(
        "mcp_servers.gate.admission.GatedCall.write_finished", lambda call, outcome: None
    )
    report = run()
    assert not report["is_good"]
    assert report["verification"] == "whole"  # nothing was altered; something was never written
    assert "the log has 1 that ended" in " ".join(report["faults"])
    wrong = [call["case"] for call in report["calls"] if call["faults"]]
    assert "REST, allowed" in wrong
