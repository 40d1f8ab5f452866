"""The index of words in messages."""

from pathlib import Path

from django.db import migrations

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0005_read_files_for_models"),
    ]

    operations = [
        run_sql_file(SQL, "message_search"),
    ]
