"""The index of words in calls of tools and in attached files."""

from pathlib import Path

from django.db import migrations

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("chat", "0045_check_before_publishing")]

    operations = [run_sql_file(SQL, "beside_search")]
