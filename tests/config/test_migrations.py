"""Databases of before go on with what there is now."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField, CreateModel
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from audit.append_only import create_triggers, remove_triggers, trigger_statements
from config.env import ROOT
from config.management.commands import migrate
from mcp_servers.klavis.models import KlavisAccount
from mcp_servers.models import ServerState
from tests.config.made_tables import SQUASHED, made_in
from tests.factories import make_tenant
from tests.mcp_servers.factories import http_server
from tests.patience import PATIENCE, wait_until
from workspaces.database import hold_lock
from workspaces.database.first_tables import is_new, only_changed_models


class Record:
    """Which migrations of an app the database remembers."""

    def __init__(self, app: str) -> None:
        self.app = app
        module = import_module(f"{app}.migrations.{SQUASHED[app]}")
        self.oldest: tuple[str, ...] = module.FIRST
        on_disk = MigrationLoader(None).disk_migrations or {}
        self.of_klavis = sorted(name for label, name in on_disk if label == "klavis")
        names = sorted(name for label, name in on_disk if label == app)
        self.each: tuple[str, ...] = tuple(name for name in names if name != SQUASHED[app])
        assert self.each[: len(module.REST)] == module.REST

    def becomes(self, *names: str) -> None:
        """As if these had been applied, and no other."""
        recorder = MigrationRecorder(connection)
        for name in self.of_klavis:  # they came in the middle of the others
            recorder.record_unapplied("klavis", name)
        for name in (SQUASHED[self.app], *self.oldest, *self.each):
            recorder.record_unapplied(self.app, name)
        for name in names:
            recorder.record_applied(self.app, name)

    def left(self) -> list[str]:
        """Those that `migrate` would apply now."""
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        return [one.name for one, _ in plan if one.app_label == self.app]


@pytest.fixture(params=sorted(SQUASHED))
def record(request: pytest.FixtureRequest, db: None) -> Record:
    return Record(request.param)


def test_a_new_database_has_nothing_left_to_migrate(record: Record) -> None:
    """REL-900: its tables were made at once, and that stands for each migration."""
    assert record.left() == []
    applied = MigrationRecorder(connection).applied_migrations()
    assert {name for app, name in applied if app == record.app} >= {*record.oldest, *record.each}


def test_an_upgraded_database_goes_on_where_it_is(record: Record) -> None:
    """REL-900: those that went through each migration take the next one, wherever they are."""
    for done in range(1, len(record.each) + 1):
        record.becomes(*record.oldest, *record.each[:done])
        assert record.left() == list(record.each[done:])


def test_the_oldest_databases_keep_their_tables(record: Record) -> None:
    """REL-900: where earlier migrations made the tables, each later one comes. The first of them leaves what is there."""
    record.becomes(*record.oldest)
    assert record.left() == list(record.each)


@pytest.mark.parametrize("app", ["audit", "workspaces"])
def test_a_database_with_all_earlier_migrations_has_nothing_to_migrate(app: str, db: None) -> None:
    """Ours: an upgrade keeps the data, and makes no table a second time."""
    recorder = MigrationRecorder(connection)
    replaced = MigrationExecutor(connection).loader.disk_migrations[app, "0001_initial"].replaces
    recorder.record_unapplied(app, "0001_initial")
    for name in replaced:
        recorder.record_applied(*name)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    executor.loader.check_consistent_history(connection)


@pytest.mark.both_engines
def test_tables_made_at_once_are_those_that_each_migration_makes(db: None) -> None:
    """REL-900: an upgraded installation and a new one differ in nothing but the order of columns."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.config.made_tables"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 10,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    at_once, one_by_one = set(made_in(connection)), set(done.stdout.splitlines())
    assert len(at_once) > 1000
    assert not sorted(at_once ^ one_by_one)[:5]


def test_only_a_new_database_spares_django_its_classes(db: None) -> None:
    """Ours: where rows may be, migrations see all models as Django makes them."""
    assert not is_new(connection)
    plain = ProjectState.reload_model
    with only_changed_models():
        assert ProjectState.reload_model is not plain
    assert ProjectState.reload_model is plain


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
        MigrationRecorder(connection).record_unapplied("mcp_servers", SQUASHED["mcp_servers"])
        executor = MigrationExecutor(connection)
        executor.loader = MigrationLoader(connection, replace_migrations=False)
        executor.migrate([("mcp_servers", "0005_use_servers_everywhere")])
        with connection.cursor() as cursor:
            cursor.execute("SELECT status, status_reason FROM mcp_servers_mcpserver")
            assert cursor.fetchall() == [("error", "It is gone.")]
    finally:
        call_command("migrate", verbosity=0)
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
    call_command("migrate", "klavis", "0001_initial", verbosity=0)
    MigrationRecorder(connection).record_unapplied("klavis", "0001_initial")
    call_command("migrate", "klavis", verbosity=0)
    kept = KlavisAccount.objects.for_workspace(tenant.workspace).get()
    assert (kept.pk, kept.base_url) == (account.pk, "https://klavis.example.org")
    assert ("klavis", "0001_initial") in MigrationRecorder(connection).applied_migrations()


def test_a_migration_that_fails_is_named(db: None) -> None:
    """REL-2353: below the traceback, with what to do."""
    found = MigrationLoader(None).disk_migrations or {}
    names = sorted((name for app, name in found if app == "chat"), reverse=True)
    for newest in names:
        MigrationRecorder(connection).record_unapplied("chat", newest)  # what it makes is there
        if any(isinstance(one, AddField | CreateModel) for one in found["chat", newest].operations):
            break
    with pytest.raises(DatabaseError) as failed:
        call_command("migrate", "chat", verbosity=0)
    [note] = failed.value.__notes__
    assert note.startswith(f"The migration chat.{newest} failed.")
    assert "docs/operations.md" in note


@pytest.mark.postgresql
def test_of_processes_that_migrate_at_once_one_does_and_the_others_wait(
    transactional_db: None,
) -> None:
    """REL-2231: two that began with an empty database ended with a traceback about a name of PostgreSQL's own."""

    is_waiting = threading.Event()

    def wait_and_migrate() -> str:
        out = StringIO()
        out.flush = is_waiting.set  # type: ignore[method-assign]
        try:
            call_command("migrate", verbosity=0, stdout=out)
        finally:
            connections.close_all()
        return out.getvalue()

    with ThreadPoolExecutor() as threads:
        with hold_lock(migrate.LOCK):
            other = threads.submit(wait_and_migrate)
            assert is_waiting.wait(PATIENCE)
            wait_until(lambda: not _sessions("NOT granted"), what="no session that waits")
            assert not other.done()
        assert "Waiting for it to finish" in other.result(PATIENCE)


@pytest.mark.postgresql
def test_a_lock_that_went_with_its_session_is_told(transactional_db: None) -> None:
    """REL-2231: another process had it, too, and neither said a word."""

    def lose_it() -> None:
        with hold_lock(migrate.LOCK):
            [session] = _sessions("granted")
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [session])
            with hold_lock(migrate.LOCK):
                assert _sessions("granted") != [session]

    with pytest.raises(OperationalError):
        lose_it()


def _sessions(state: str) -> list[int]:
    """Those that have the lock of migrations, or wait for it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND objid = %s"
            f" AND {state}",
            [migrate.LOCK],
        )
        return [pid for (pid,) in cursor.fetchall()]
