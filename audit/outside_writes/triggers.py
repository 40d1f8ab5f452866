"""Triggers on every table of configuration. They note a write, unless its own transaction announced it.

Made after each migration, since they name the columns they watch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from django.db import connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from workspaces.audited_tables import AuditedTable, audited_tables

NAME: Final = "audit_net_"
_NOTES: Final = "audit_outsidewrite"
_WORKSPACE: Final = "workspaces_workspace"

_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION audit_note_write() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    watched text[] := string_to_array(TG_ARGV[0], ',');
    before jsonb; after jsonb; whole jsonb; row_key text; home text;
BEGIN
    IF TG_OP = 'DELETE' THEN whole := to_jsonb(OLD); ELSE whole := to_jsonb(NEW); END IF;
    row_key := whole ->> TG_ARGV[1];
    home := CASE WHEN TG_TABLE_NAME = '{_WORKSPACE}' THEN row_key ELSE coalesce(whole ->> 'workspace_id', '') END;
    IF TG_OP <> 'INSERT' THEN
        SELECT jsonb_object_agg(key, value) INTO before FROM jsonb_each(to_jsonb(OLD)) WHERE key = ANY(watched);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        SELECT jsonb_object_agg(key, value) INTO after FROM jsonb_each(to_jsonb(NEW)) WHERE key = ANY(watched);
    END IF;
    IF TG_OP = 'UPDATE' AND before = after THEN RETURN NULL; END IF;
    -- A row that is deleted is announced before, and may take others with it.
    IF EXISTS (
        SELECT 1 FROM audit_pendingseal p JOIN audit_auditentry e ON e.id = p.entry_id
        WHERE p.xact = pg_current_xact_id()::text AND e.action = 'config.changed'
            AND (e.details ->> 'id' = row_key OR (TG_OP = 'DELETE' AND e.details ->> 'verb' = 'deleted'))
    ) THEN RETURN NULL; END IF;
    INSERT INTO {_NOTES} (table_name, row_id, verb, workspace_key, before, after, xact)
    VALUES (TG_TABLE_NAME, row_key, TG_OP, home, before, after, pg_current_xact_id()::text);
    RETURN NULL;
END $$
"""  # noqa: S608 - names of ours


def install(using: str = "default", **_kwargs: Any) -> None:
    """Make the triggers that are not there yet, and remove those of an older form. A receiver of post_migrate."""
    connection = connections[using]
    if _NOTES not in connection.introspection.table_names():
        return  # migrated to a state before there was a net
    with transaction.atomic(using=using), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            _install_function(cursor)
        for watched in audited_tables():
            _install_on(watched, connection, cursor)


def _install_function(cursor: Any) -> None:
    """Make it anew. A role that does not own it cannot, and need not if it is as it should be."""
    _, body, _ = _FUNCTION.split("$$")
    cursor.execute(
        "SELECT prosrc = %s AND NOT pg_has_role(proowner, 'USAGE')"
        " FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace"
        " WHERE proname = 'audit_note_write' AND nspname = current_schema()",
        [body],
    )
    if (True,) not in cursor.fetchall():
        cursor.execute(_FUNCTION)


def trigger_statements(connection: BaseDatabaseWrapper) -> list[str]:
    """Give the statements that make all of them, and on PostgreSQL their function."""
    is_postgresql = connection.vendor == "postgresql"
    make = _postgresql if is_postgresql else _sqlite
    made = [statement for watched in audited_tables() for statement in make(watched).values()]
    return [_FUNCTION, *made] if is_postgresql else made


def remove(using: str = "default", plan: Sequence[object] = (), **_kwargs: Any) -> None:
    """Take the triggers away, if there is anything to migrate. A receiver of pre_migrate."""
    connection = connections[using]
    if not plan:
        return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        for watched in audited_tables():
            if watched.table in tables:
                for name in _names_on(watched.table, connection, cursor):
                    _drop(name, watched.table, connection, cursor)


def _install_on(watched: AuditedTable, connection: BaseDatabaseWrapper, cursor: Any) -> None:
    wanted = _postgresql(watched) if connection.vendor == "postgresql" else _sqlite(watched)
    there = _names_on(watched.table, connection, cursor)
    for name in there - set(wanted):
        _drop(name, watched.table, connection, cursor)
    for name, statement in wanted.items():
        if name not in there:
            cursor.execute(statement)


def _drop(name: str, table: str, connection: BaseDatabaseWrapper, cursor: Any) -> None:
    on = f" ON {table}" if connection.vendor == "postgresql" else ""
    cursor.execute(f"DROP TRIGGER {name}{on}")


def _names_on(table: str, connection: BaseDatabaseWrapper, cursor: Any) -> set[str]:
    if connection.vendor == "postgresql":
        cursor.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname LIKE %s",
            [table, f"{NAME}%"],
        )
    else:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s AND name LIKE %s",
            [table, f"{NAME}%"],
        )
    return {name for (name,) in cursor.fetchall()}


def _postgresql(watched: AuditedTable) -> dict[str, str]:
    events = " OR ".join(
        f"UPDATE OF {', '.join(watched.columns)}" if verb == "UPDATE" else verb
        for verb in watched.verbs
    )
    key = _key_of(watched.model)
    arguments = f"'{','.join(watched.columns)}', '{key}'"
    body = f"AFTER {events} ON {watched.table} FOR EACH ROW EXECUTE FUNCTION audit_note_write({arguments})"
    name = _named(watched.table, body)
    return {name: f"CREATE TRIGGER {name} {body}"}


def _sqlite(watched: AuditedTable) -> dict[str, str]:
    """SQLite knows no number of a transaction: what waits for its seal, a second at most, stands for it."""
    statements = {}
    for verb in watched.verbs:
        row = "OLD" if verb == "DELETE" else "NEW"
        key = f"{row}.{_key_of(watched.model)}"
        has_workspace = any(f.column == "workspace_id" for f in watched.model._meta.concrete_fields)
        home = (
            key if watched.table == _WORKSPACE else f"{row}.workspace_id" if has_workspace else "''"
        )
        before = _as_object("OLD", watched) if verb != "INSERT" else "NULL"
        after = _as_object("NEW", watched) if verb != "DELETE" else "NULL"
        changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in watched.columns)
        condition = f"WHEN {changed}" if verb == "UPDATE" else ""
        events = f"UPDATE OF {', '.join(watched.columns)}" if verb == "UPDATE" else verb
        deleted = "OR json_extract(e.details, '$.verb') = 'deleted'" if verb == "DELETE" else ""
        body = f"""AFTER {events} ON {watched.table} {condition}
            BEGIN
                INSERT INTO {_NOTES} (table_name, row_id, verb, workspace_key, before, after)
                SELECT '{watched.table}', {key}, '{verb}', coalesce({home}, ''), {before}, {after}
                WHERE NOT EXISTS (
                    SELECT 1 FROM audit_pendingseal p JOIN audit_auditentry e ON e.id = p.entry_id
                    WHERE e.action = 'config.changed'
                        AND (replace(json_extract(e.details, '$.id'), '-', '') = {key} {deleted})
                );
            END"""  # noqa: S608 - names of ours
        name = _named(f"{watched.table}_{verb.lower()}", body)
        statements[name] = f"CREATE TRIGGER {name} {body}"
    return statements


def _as_object(row: str, watched: AuditedTable) -> str:
    pairs = ", ".join(f"'{name}', {row}.{name}" for name in watched.columns)
    return f"json_object({pairs})"


def _key_of(model: type[models.Model]) -> str:
    key = model._meta.pk
    assert key is not None
    return str(key.column)


def _named(about: str, body: str) -> str:
    """A name that changes with what the trigger does; within PostgreSQL's 63 characters."""
    return f"{NAME}{about[:40]}_{hashlib.sha256((about + body).encode()).hexdigest()[:10]}"
