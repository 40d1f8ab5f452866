"""While an installation is upgraded, servers of the version before still run on the tables of the new one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from django.db import migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED, Field

OURS: Final = ("workspaces", "audit", "mcp_servers", "klavis", "chat")
BEFORE_ANY_RELEASE: Final = {("mcp_servers", "0006_keep_what_checks_write_apart")}
"""Nobody ran a version before these beside one after them."""
TAKES_AWAY: Final = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
)


def faults(operation: Operation, made: set[str]) -> Iterator[str]:
    """What of an operation breaks the code of before.

    Args:
        made: tables that the same migration makes; no code of before writes them.
    """
    model = getattr(operation, "model_name", getattr(operation, "name", "")).lower()
    if isinstance(operation, migrations.CreateModel) or model in made:
        return
    if isinstance(operation, TAKES_AWAY):
        yield f"{type(operation).__name__} of {model}: remove it one version after the code that uses it"
    if isinstance(operation, migrations.AddField) and not can_be_left_out(operation.field):
        yield f"{model}.{operation.name}: code of before inserts rows without it; give it a db_default"


def can_be_left_out(field: Field) -> bool:
    """Whether a row can be inserted by code that does not know the column."""
    return bool(field.null or field.many_to_many or field.db_default is not NOT_PROVIDED)


def test_code_of_before_goes_on_with_new_tables() -> None:
    """REL-45: no migration takes away what running servers use, or wants of them what they do not know."""
    found = [
        f"{app}.{name}: {fault}"
        for (app, name), one in sorted((MigrationLoader(None).disk_migrations or {}).items())
        if app in OURS and not name.startswith("0001") and (app, name) not in BEFORE_ANY_RELEASE
        for fault in faults_of(one)
    ]
    assert not found, "\n".join(found)


def faults_of(migration: migrations.Migration) -> Iterator[str]:
    made = {
        one.name.lower() for one in migration.operations if isinstance(one, migrations.CreateModel)
    }
    for operation in migration.operations:
        parts = getattr(operation, "database_operations", None)
        for part in [operation] if parts is None else parts:
            yield from faults(part, made)


@pytest.mark.parametrize("name", sorted(BEFORE_ANY_RELEASE))
def test_an_exception_is_one_still(name: tuple[str, str]) -> None:
    assert list(faults_of((MigrationLoader(None).disk_migrations or {})[name]))
