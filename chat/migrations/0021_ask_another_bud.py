from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0020_check_buds"),
    ]

    operations = [
        migrations.AddField(
            model_name="queuedmessage",
            name="mentioned_bud",
            field=models.ForeignKey(
                help_text="Answers this once in place of the conversation's.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.bud",
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="mentioned_bud",
            field=models.ForeignKey(
                help_text="Answers this once in place of the conversation's.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.bud",
            ),
        ),
        run_sql_file(SQL, "mentioned_bud_tenant_references"),
    ]
