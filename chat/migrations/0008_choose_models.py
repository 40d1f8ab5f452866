from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0007_buds_take_all_tools"),
    ]

    operations = [
        migrations.AddField(
            model_name="bud",
            name="is_model_fixed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="People cannot choose another model in their chats with this bud.",
                verbose_name="fix the model",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="chosen_model",
            field=models.ForeignKey(
                editable=False,
                help_text="Answers in place of the bud's own, as long as the bud lets people choose.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.providermodel",
            ),
        ),
        run_sql_file(SQL, "chosen_model_tenant_references"),
    ]
