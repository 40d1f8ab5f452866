from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0009_keep_deleted_conversations"),
        ("workspaces", "0003_account_addresses"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="chosen_model",
            field=models.ForeignKey(
                help_text="Answers this once in place of the conversation's.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.providermodel",
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="rated_at",
            field=models.DateTimeField(null=True, verbose_name="rated"),
        ),
        migrations.AddField(
            model_name="turn",
            name="rating",
            field=models.CharField(
                blank=True,
                choices=[("", "None"), ("good", "Good"), ("bad", "Bad")],
                db_default="",
                default="",
                max_length=4,
                verbose_name="rating",
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="rating_reason",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="reason"),
        ),
        migrations.AddField(
            model_name="turn",
            name="revises",
            field=models.UUIDField(help_text="The turn whose answer is written again.", null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="wish",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", ""),
                    ("shorter", "shorter"),
                    ("longer", "longer"),
                    ("simpler", "simpler"),
                ],
                db_default="",
                default="",
                help_text="How it shall differ from that one.",
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("rating", ""), _negated=True),
                fields=["workspace", "-rated_at"],
                name="turn_rated",
            ),
        ),
        run_sql_file(SQL, "turn_model_tenant_references"),
    ]
