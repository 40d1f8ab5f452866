"""What the walks compare: all rows of one side, as they are before a request and after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

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


def state_of(side: Side) -> dict[str, list[dict[str, Any]]]:
    """All rows of one side, people and workspace included, as values that can be compared."""
    if connection.vendor == "postgresql":
        return _state_in_one_statement(side)
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


def _state_in_one_statement(side: Side) -> dict[str, list[dict[str, Any]]]:
    """The same as PostgreSQL writes it: the walks compare so often that a statement for each table is half their time."""
    workspace = side.tenant.workspace
    people = [person.pk for person in side.tenant.people.values()]
    wanted: list[tuple[str, str, str, list[Any]]] = [
        (model._meta.label, model._meta.db_table, "workspace_id = %s", [workspace.pk])
        for model in tenant_models()
    ]
    wanted += [
        ("people", User._meta.db_table, "id = ANY(%s)", [people]),
        ("workspace", type(workspace)._meta.db_table, "id = %s", [workspace.pk]),
    ]
    rows = "(SELECT jsonb_agg(to_jsonb(t) - 'last_login' ORDER BY to_jsonb(t)::text) FROM {} t WHERE {})"
    statement = "SELECT " + ", ".join(rows.format(table, where) for _, table, where, _ in wanted)
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for *_, values in wanted for value in values])
        found = cursor.fetchone()
    labels = [label for label, *_ in wanted]
    return {
        label: json.loads(texts) if isinstance(texts, str) else texts or []
        for label, texts in zip(labels, found, strict=True)
    }
