"""Databases of before go on with what there is now."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from audit.append_only import create_triggers, remove_triggers, trigger_statements
from mcp_servers.klavis.models import KlavisAccount
from mcp_servers.models import ServerState
from tests import idle_transactions
from tests.factories import make_tenant
from tests.mcp_servers.factories import http_server

APPS = ("workspaces", "audit", "mcp_servers", "chat")


@pytest.fixture
def recorded_before(db: None) -> MigrationRecorder:
    """The record of a database that was made before each app's migrations became one."""
    recorder = MigrationRecorder(connection)
    loader = MigrationExecutor(connection).loader
    for app in APPS:
        replaced = loader.disk_migrations[app, "0001_initial"].replaces
        recorder.record_unapplied(app, "0001_initial")
        for name in replaced:
            recorder.record_applied(*name)
    return recorder


@pytest.mark.both_engines
def test_a_database_with_all_earlier_migrations_has_nothing_to_migrate(
    recorded_before: MigrationRecorder,
) -> None:
    """Ours: an upgrade keeps the data, and makes no table a second time."""
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    executor.loader.check_consistent_history(connection)


@pytest.mark.both_engines
def test_a_migration_can_take_the_log_s_triggers_away_and_make_them_again(
    transactional_db: None,
) -> None:
    """SEC-100: what changes a guarded table leaves it guarded."""

    def guarded() -> set[str]:
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("SELECT name || tbl_name FROM sqlite_master WHERE type = 'trigger'")
            else:
                cursor.execute("SELECT tgname || tgrelid::regclass::text FROM pg_trigger")
            return {name for (name,) in cursor.fetchall()}

    before = guarded()
    made = sum("CREATE TRIGGER" in statement for statement in trigger_statements(connection))
    with connection.schema_editor() as editor:
        remove_triggers(editor)
    assert len(before - guarded()) == made
    with connection.schema_editor() as editor:
        create_triggers(editor)
    assert guarded() == before


@pytest.mark.both_engines
def test_what_is_known_of_servers_survives_the_way_back_and_forth(transactional_db: None) -> None:
    """Ours: a migration that parts a table takes the rows along, in both directions."""
    tenant = make_tenant("acme")
    server = http_server(tenant, "https://tools.example.org/mcp")
    known = {
        "status": "error",
        "status_reason": "It is gone.",
        "consecutive_failures": 3,
        "capabilities": {"tools": {"listChanged": True}},
        "protocol_revision": "2026-07-28",
        "instructions": "Be polite.",
    }
    server.state.write(**known)
    try:
        call_command("migrate", "mcp_servers", "0005_use_servers_everywhere", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT status, status_reason FROM mcp_servers_mcpserver")
            assert cursor.fetchall() == [("error", "It is gone.")]
    finally:
        call_command("migrate", verbosity=0)
        idle_transactions.take_found()  # a migration computes between its statements
    state = ServerState.objects.for_workspace(tenant.workspace).get()
    assert {name: getattr(state, name) for name in known} == known
    assert state.server == server


@pytest.mark.both_engines
def test_tables_of_klavis_from_before_it_was_an_app_stay_as_they_are(
    transactional_db: None,
) -> None:
    """Ours: its first migration makes tables only where an earlier version has not made them."""
    tenant = make_tenant("acme")
    account = KlavisAccount.objects.for_workspace(tenant.workspace).create(
        workspace=tenant.workspace, base_url="https://klavis.example.org"
    )
    MigrationRecorder(connection).record_unapplied("klavis", "0001_initial")
    call_command("migrate", "klavis", verbosity=0)
    kept = KlavisAccount.objects.for_workspace(tenant.workspace).get()
    assert (kept.pk, kept.base_url) == (account.pk, "https://klavis.example.org")
    assert ("klavis", "0001_initial") in MigrationRecorder(connection).applied_migrations()
