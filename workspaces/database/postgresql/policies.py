"""The policies of PostgreSQL that hold for Trellis's own role: which rows a transaction may see, add and change.

They are made from the models after each `migrate`, so no new table can be forgotten, and go again with the setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from django.apps import apps
from django.db import connections, models, transaction

from workspaces.database.row_security import EVERYTHING, PERSON_MARK, SETTING, is_on

COLUMN: Final = "workspace_id"
_PREFIX: Final = "trellis_"
# Each in a query of its own, so that PostgreSQL reads the setting once for a statement and not for each row.
_EVERYTHING: Final = f"(SELECT current_setting('{SETTING}', true)) = '{EVERYTHING}'"
_ONES: Final = f"(SELECT string_to_array(current_setting('{SETTING}', true), ','))::text[]"
OF_PERSON: Final = f"'{PERSON_MARK}' || user_id::text = ANY ({_ONES})"
"""Rows of the person whom the transaction speaks for."""
Verb = Literal["ALL", "SELECT", "INSERT", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """One rule of one table; a row needs to satisfy one of them."""

    table: str
    verb: Verb
    condition: str

    @property
    def name(self) -> str:
        """Its name in the database, which changes with what it says."""
        digest = sha256(f"{self.verb} {self.condition}".encode()).hexdigest()[:8]
        return f"{_PREFIX}{self.verb.lower()}_{digest}"

    @property
    def statement(self) -> str:
        """What makes it."""
        clauses = {"INSERT": "WITH CHECK ({0})", "ALL": "USING ({0}) WITH CHECK ({0})"}
        clause = clauses.get(self.verb, "USING ({0})").format(self.condition)
        return f'CREATE POLICY "{self.name}" ON "{self.table}" FOR {self.verb} {clause}'


_allowed: dict[tuple[str, Verb], str] = {}
_without_model: set[str] = set()
_platform: set[str] = set()


def also_allow(model: type[models.Model], verb: Verb, condition: str) -> None:
    """From now on allow more of a table than the rows of the transaction's workspaces."""
    _allowed[model._meta.db_table, verb] = condition


def keep_for_platform(model: type[models.Model]) -> None:
    """From now on show a table that names no workspace in a column of its own to the platform's jobs only."""
    _platform.add(model._meta.db_table)


def protect_table(name: str) -> None:
    """From now on protect a table that has a column for its workspace, and no model."""
    _without_model.add(name)


def tenant_tables() -> list[str]:
    """The tables that name a workspace in each row."""
    return sorted(
        _without_model
        | {
            model._meta.db_table
            for model in apps.get_models(include_auto_created=True)
            if any(field.column == COLUMN for field in model._meta.local_concrete_fields)
        }
    )


def protected_tables() -> list[str]:
    """Every table that has policies."""
    return sorted({*tenant_tables(), *_platform})


def policies() -> Iterator[RowPolicy]:
    """Every rule, as the models have it."""
    own = f"{_EVERYTHING} OR {COLUMN}::text = ANY ({_ONES})"
    for table in tenant_tables():
        yield RowPolicy(table, "ALL", own)
    for table in sorted(_platform):
        yield RowPolicy(table, "ALL", _EVERYTHING)
    for (table, verb), condition in sorted(_allowed.items()):
        yield RowPolicy(table, verb, condition)


def install(using: str = "default", **_kwargs: Any) -> None:
    """Make what is missing and drop what is not wanted, as the setting says. A receiver of post_migrate."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    wanted = list(policies()) if is_on() else []
    with transaction.atomic(using=using), connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
        for statement in _changes([one for one in wanted if one.table in there], cursor):
            cursor.execute(statement)


def is_in_place() -> bool:
    """Whether the database has exactly the policies that the setting asks for."""
    with connections["default"].cursor() as cursor:
        return not list(_changes(list(policies()) if is_on() else [], cursor))


@dataclass(frozen=True, slots=True)
class DatabaseRole:
    """The role that statements of this process have in the database."""

    name: str
    is_exempt: bool
    """No policy holds for it."""
    owns_tables: bool


def find_role() -> DatabaseRole:
    """Ask the database."""
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper OR rolbypassrls, EXISTS (SELECT 1 FROM pg_class"
            " WHERE relowner = pg_roles.oid AND relname = ANY(%s))"
            " FROM pg_roles WHERE rolname = current_user",
            [protected_tables()],
        )
        return DatabaseRole(*cursor.fetchone())


def _changes(wanted: list[RowPolicy], cursor: Any) -> Iterator[str]:
    cursor.execute(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        " AND (relrowsecurity OR relforcerowsecurity)"
    )
    enabled = dict(cursor.fetchall())
    cursor.execute(
        "SELECT tablename, policyname FROM pg_policies"
        " WHERE schemaname = current_schema() AND starts_with(policyname, %s)",
        [_PREFIX],
    )
    there = set(cursor.fetchall())
    names = {(one.table, one.name) for one in wanted}
    # A new rule before its predecessor goes, and the wall before anything else.
    for table in sorted({one.table for one in wanted}):
        if not enabled.get(table):
            yield f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY'
    for one in wanted:
        if (one.table, one.name) not in there:
            yield one.statement
    for table, name in sorted(there - names):
        yield f'DROP POLICY "{name}" ON "{table}"'
    for table in sorted({table for table, _ in there} - {one.table for one in wanted}):
        yield f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY'
