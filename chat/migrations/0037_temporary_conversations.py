"""Conversations that stand in no list and are erased by themselves."""

from functools import partial
from pathlib import Path

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from workspaces.database.migration_operations import OnDatabase
from workspaces.database.sql_files import read_statements

SQL = Path(__file__).parent.parent / "sql"


def run_those(schema_editor: BaseDatabaseSchemaEditor, *, begin: str) -> None:
    """Take the triggers of messages away, or bring them back: SQLite makes the table that they read anew.

    Messages keep their row numbers, so the index of their words stays.
    """
    if schema_editor.connection.vendor == "sqlite":
        for statement in read_statements(SQL, "message_search", "sqlite"):
            if statement.startswith(begin):
                schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chat", "0036_remember_lists_of_models")]

    operations = [
        OnDatabase(partial(run_those, begin="DROP TRIGGER")),
        migrations.AddField(
            model_name="conversation",
            name="is_temporary",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="In no list and no search, and erased some hours after its last activity.",
            ),
        ),
        OnDatabase(partial(run_those, begin="CREATE TRIGGER")),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("is_temporary", True)),
                fields=["last_message_at"],
                name="conversation_temporary",
            ),
        ),
    ]
