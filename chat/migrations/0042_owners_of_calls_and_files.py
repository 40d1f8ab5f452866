"""Whose calls of tools and attached files are, beside them."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0041_ask_a_second_person"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        *(
            migrations.AddField(
                model_name=model,
                name="owner",
                field=models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    editable=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            )
            for model in ("attachment", "toolcall")
        ),
        run_sql_file(SQL, "owner_of_calls_and_files"),
    ]
