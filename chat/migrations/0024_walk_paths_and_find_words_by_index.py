from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("chat", "0023_tell_of_answers")]

    operations = [
        # The database drops one index: Django would make the whole table anew on SQLite.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="message",
                    name="parent",
                    field=models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="chat.message",
                    ),
                )
            ],
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["parent", "order_key"], name="message_children"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("parent", None)),
                fields=["conversation", "order_key"],
                name="message_firsts",
            ),
        ),
        run_sql_file(SQL, "message_children"),
        run_sql_file(SQL, "message_search"),
    ]
