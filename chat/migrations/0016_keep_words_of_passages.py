"""Words of passages, kept beside them on PostgreSQL."""

from pathlib import Path

from django.db import migrations

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0015_remind_by_mail"),
    ]

    operations = [
        run_sql_file(SQL, "knowledge_words"),
    ]
