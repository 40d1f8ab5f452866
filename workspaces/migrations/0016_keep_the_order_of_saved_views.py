"""Saved views of lists that have got actions: the boxes by which rows are chosen count as their first column."""

from typing import Final
from urllib.parse import parse_qsl, urlencode

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

LISTS: Final = (
    *("workspaces.membership", "workspaces.apitoken", "workspaces.workspace", "workspaces.user"),
    *("chat.bud", "chat.modelprovider"),
)


def move_columns(query: str, by: int) -> str:
    """Give the same query with each column of its order so many places further on."""
    return urlencode(
        [
            (name, ".".join(_moved(one, by) for one in value.split(".")) if name == "o" else value)
            for name, value in parse_qsl(query, keep_blank_values=True)
        ]
    )


def _moved(column: str, by: int) -> str:
    sign = "-" if column.startswith("-") else ""
    number = column.removeprefix("-")
    return f"{sign}{int(number) + by}" if number.isdecimal() and int(number) + by >= 0 else column


def _move(apps: Apps, schema_editor: BaseDatabaseSchemaEditor, by: int) -> None:
    rows = apps.get_model("workspaces", "SavedListView")._base_manager
    rows = rows.using(schema_editor.connection.alias)
    for view in rows.filter(list__in=LISTS, query__contains="o=").iterator():
        moved = move_columns(view.query, by)
        if moved != view.query:
            rows.filter(pk=view.pk).update(query=moved)


def forwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Count the new column."""
    _move(apps, schema_editor, 1)


def backwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Count without it."""
    _move(apps, schema_editor, -1)


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0015_pictures_of_people")]

    operations = [migrations.RunPython(forwards, backwards)]
