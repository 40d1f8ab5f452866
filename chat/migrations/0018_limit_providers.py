from pathlib import Path

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0017_stand_in_for_providers"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprovider",
            name="most_a_minute",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="All people and processes together. Leave empty for no limit.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(100000),
                ],
                verbose_name="requests a minute",
            ),
        ),
        migrations.AddField(
            model_name="modelprovider",
            name="most_at_once",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="Further ones wait their turn for up to a minute. Leave empty for no limit.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000),
                ],
                verbose_name="requests at once",
            ),
        ),
        migrations.CreateModel(
            name="ModelRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("alive_until", models.DateTimeField(editable=False)),
                ("started_at", models.DateTimeField(editable=False, null=True)),
                ("ended_at", models.DateTimeField(editable=False, null=True)),
                (
                    "provider",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.modelprovider",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["provider", "started_at"], name="model_request_recent")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "model_request_tenant_references"),
    ]
