from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0016_keep_words_of_passages"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprovider",
            name="fallback",
            field=models.ForeignKey(
                blank=True,
                help_text="Answers with its default model while this provider is down, has too many requests or no credit.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.modelprovider",
                verbose_name="if it fails, ask",
            ),
        ),
        run_sql_file(SQL, "fallback_tenant_references"),
    ]
