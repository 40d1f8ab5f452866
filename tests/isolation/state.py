"""What the walks compare: all rows of one side, as they are before a request and after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.db import connection, models

from tests.isolation.world import Side
from workspaces.models import User

OWN_APPS = ("workspaces", "audit", "mcp_servers", "chat")


@cache
def tenant_models() -> Sequence[type[models.Model]]:
    """Every model of ours whose rows belong to a workspace."""
    return [
        model
        for model in apps.get_models()
        if model.__module__.partition(".")[0] in OWN_APPS
        and any(field.attname == "workspace_id" for field in model._meta.concrete_fields)
    ]


def state_of(side: Side) -> dict[str, Any]:
    """All rows of one side, people and workspace included, by model; to be compared with what this gave before."""
    if connection.vendor == "postgresql":
        return dict(zip(_wanted(), _asked(side, "state", "text", _AS_TEXT), strict=True))
    return rows_of(side)


def rows_of(side: Side) -> dict[str, list[dict[str, Any]]]:
    """The same, with the value of each column."""
    if connection.vendor == "postgresql":
        found = _asked(side, "rows", "jsonb", _AS_VALUES)
        return {
            label: json.loads(rows) if isinstance(rows, str) else rows or []
            for label, rows in zip(_wanted(), found, strict=True)
        }
    workspace = side.tenant.workspace
    state: dict[str, list[Any]] = {
        model._meta.label: list(
            model._base_manager.filter(workspace_id=workspace.pk).order_by("pk").values()
        )
        for model in tenant_models()
    }
    people = [person.pk for person in side.tenant.people.values()]
    users = User.objects.filter(pk__in=people).order_by("pk").values()
    state["people"] = [{**row, "last_login": None} for row in users]
    state["workspace"] = list(type(workspace).objects.filter(pk=workspace.pk).values())
    return state


_AS_TEXT: Final = (
    "(SELECT string_agg({row}::text, E'\\n' ORDER BY {row}::text) FROM {table} t WHERE {where})"
)
_AS_VALUES: Final = (
    "(SELECT jsonb_agg(to_jsonb({row}) ORDER BY {row}::text) FROM {table} t WHERE {where})"
)


@cache
def _wanted() -> Mapping[str, tuple[str, str, str]]:
    """The table, the rows and what is told of each, by label."""
    models_of_ours = {
        model._meta.label: (model._meta.db_table, "workspace_id = $1", "t")
        for model in tenant_models()
    }
    people = (User._meta.db_table, "id = ANY($2)", "(to_jsonb(t) - 'last_login')")
    return {
        **models_of_ours,
        "people": people,
        "workspace": ("workspaces_workspace", "id = $1", "t"),
    }


def _asked(side: Side, name: str, kind: str, telling: str) -> list[Any]:
    """What PostgreSQL says of all tables in one statement: the walks compare so often that one for each takes too long."""
    values = (side.tenant.workspace.pk, [person.pk for person in side.tenant.people.values()])
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regproc(%s)", [f"pg_temp.{name}"])
        if cursor.fetchone()[0] is None:
            _make_function(cursor, name, kind, telling)
        cursor.execute(f"SELECT pg_temp.{name}(%s, %s)", values)
        return list(cursor.fetchone()[0])


def _make_function(cursor: Any, name: str, kind: str, telling: str) -> None:
    """Have PostgreSQL keep the plan, which takes it five times as long as to follow it.

    A function does: what the driver prepares is lost with each rollback.
    """
    columns = ", ".join(
        telling.format(table=table, where=where, row=row)
        for table, where, row in _wanted().values()
    )
    cursor.execute(
        f"CREATE FUNCTION pg_temp.{name}(uuid, uuid[]) RETURNS {kind}[] LANGUAGE plpgsql AS"
        f" $made$ BEGIN RETURN ARRAY[{columns}]; END $made$"
    )
