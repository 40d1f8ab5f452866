"""What a search walks: in some chats, for a tool, and for words in few messages."""

from pathlib import Path

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.functions import Upper

from workspaces.database.migration_operations import OnDatabase
from workspaces.database.sql_files import read_statements, run_sql_file

SQL = Path(__file__).parent.parent / "sql"


def index_again(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let SQLite's index of words know the chat of each message; PostgreSQL's stays as it is."""
    if schema_editor.connection.vendor == "sqlite":
        for statement in read_statements(SQL, "message_search", "sqlite"):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("chat", "0029_prepare_knowledge_with_the_platforms_provider")]

    operations = [
        OnDatabase(index_again),
        run_sql_file(SQL, "message_walks"),
        *(
            migrations.AddIndex(
                model_name="toolcall",
                index=models.Index("workspace", Upper(column), "message", name=name),
            )
            for column, name in (
                ("tool_name", "tool_call_by_tool"),
                ("server_name", "tool_call_by_server"),
                ("builtin", "tool_call_by_builtin"),
            )
        ),
    ]
