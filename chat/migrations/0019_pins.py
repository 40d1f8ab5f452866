from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0018_limit_providers"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Pin",
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
                ("model", models.CharField(blank=True, editable=False, max_length=200)),
                (
                    "bud",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.bud",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
                        editable=False,
                        null=True,
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
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "bud"), name="pin_of_bud_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("bud", None)),
                        fields=("owner", "provider", "model"),
                        name="pin_of_model_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("bud", None), ("provider", None)),
                        fields=("workspace", "owner", "model"),
                        name="pin_of_platforms_model_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("bud__isnull", False), ("model", ""), ("provider", None)),
                            models.Q(("bud", None), models.Q(("model", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="pin_of_a_bud_or_a_model",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "pin_tenant_references"),
    ]
