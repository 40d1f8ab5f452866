"""Keep short what is new in the index of calls and files: each search reads through it, and its usual 4 MB take 130 ms."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from workspaces.database.migration_operations import OnDatabase


def shorten(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """SQLite's index has no such list."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER INDEX chat_beside_lexemes_found SET (gin_pending_list_limit = 256)"
        )


class Migration(migrations.Migration):
    dependencies = [("chat", "0048_keep_what_drafts_take_along")]

    operations = [OnDatabase(shorten)]
