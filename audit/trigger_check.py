"""Whether the triggers under the log are those that Trellis made: none missing, changed, switched off or added."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import connection, transaction

from audit import append_only, outside_writes

_DEFINED: Final = re.compile(
    r"CREATE TRIGGER (?P<name>\S+) (?P<moment>BEFORE|AFTER) (?P<events>.+?) ON (?:\w+\.)?(?P<table>\w+) "
    r"FOR EACH (?P<each>ROW|STATEMENT) EXECUTE FUNCTION (?:\w+\.)?(?P<function>\w+)\((?P<arguments>.*)\)"
)
_FUNCTION: Final = re.compile(r"CREATE OR REPLACE FUNCTION (\w+)\(\).*?\$\$(.*)\$\$", re.DOTALL)
_NAMED: Final = re.compile(r"CREATE TRIGGER (\S+) .*? ON (\w+)\b")
_BARE: Final = frozenset({"audit_pendingseal", "audit_outsidewrite", "audit_auditbody"})
"""What our triggers and the sealer fill: without triggers of its own, so that a foreign one would lose what comes."""
_LARGE: Final = 100

Place = tuple[str, str]
"""Table and name of a trigger."""


def find_faults() -> list[str]:
    """Compare the database's triggers with those expected; each fault as a sentence."""
    statements = expected_statements()
    triggers: dict[Place, str] = {}
    for statement in map(_in_one_line, statements):
        if found := _NAMED.match(statement):
            triggers[found[2], found[1]] = statement
    is_postgresql = connection.vendor == "postgresql"
    there = _of_postgresql(statements) if is_postgresql else _of_sqlite()
    faults = []
    for (table, name), statement in triggers.items():
        wanted = _parts(statement) if is_postgresql else statement
        found_here = there.get((table, name))
        if found_here is None:
            faults.append(f"The trigger {name} of {table} is missing.")
        elif found_here != wanted:
            faults.append(f"The trigger {name} of {table} was changed or switched off.")
    guarded = {table for table, _ in triggers} | _BARE
    for table, name in sorted(there.keys() - triggers.keys()):
        if table in guarded:
            faults.append(f"{table} has a trigger that is not Trellis' own: {name!a}.")
    if is_postgresql:
        faults += _faults_of_postgresql(sorted(guarded))
    return faults[:_LARGE]


def expected_statements() -> list[str]:
    """What makes the triggers and their functions: of the append-only log, and of configuration that is written past the services."""
    return append_only.trigger_statements(connection) + outside_writes.trigger_statements(
        connection
    )


def restore() -> list[str]:
    """Make all of them anew; gives the faults that there were. Foreign triggers stay, for a person to look at."""
    faults = find_faults()
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in map(_in_one_line, expected_statements()):
            if found := _NAMED.match(statement):
                on = f" ON {found[2]}" if connection.vendor == "postgresql" else ""
                cursor.execute(f"DROP TRIGGER IF EXISTS {found[1]}{on}")
        for statement in expected_statements():
            cursor.execute(statement)
    return faults


def _of_sqlite() -> dict[Place, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'")
        return {(table, name): _in_one_line(sql or "") for table, name, sql in cursor.fetchall()}


def _of_postgresql(statements: list[str]) -> dict[Place, Any]:
    functions = {
        found[1]: found[2] for text in statements if (found := _FUNCTION.search(text)) is not None
    }
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname, t.tgname, t.tgenabled, pg_get_triggerdef(t.oid), p.proname, p.prosrc, l.lanname
            FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
            JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
            WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
            """
        )
        rows = cursor.fetchall()
    there: dict[Place, Any] = {}
    for table, name, enabled, definition, function, source, language in rows:
        is_whole = (
            enabled in {"O", "A"}
            and language == "plpgsql"
            and source.strip() == functions.get(function, "").strip()
        )
        there[table, name] = _parts(definition) if is_whole else "changed"
    return there


def _faults_of_postgresql(tables: list[str]) -> list[str]:
    """What keeps triggers from running without touching them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('session_replication_role')")
        (role,) = cursor.fetchone()
        cursor.execute(
            "SELECT tablename, rulename FROM pg_rules WHERE schemaname = current_schema() AND tablename = ANY(%s)",
            [tables],
        )
        rules = cursor.fetchall()
    faults = [f"{table} has a rule that is not Trellis' own: {name!a}." for table, name in rules]
    if role == "replica":
        faults.append("The database runs Trellis' sessions without triggers.")
    return faults


def _parts(definition: str) -> Any:
    """A trigger of PostgreSQL, which writes events in an order of its own and names the schema."""
    found = _DEFINED.fullmatch(_in_one_line(definition))
    if found is None:
        return definition
    parts = found.groupdict()
    events = frozenset(parts.pop("events").replace('"', "").split(" OR "))
    return (*parts.values(), events)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
