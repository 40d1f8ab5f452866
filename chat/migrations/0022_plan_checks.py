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
        ("chat", "0021_ask_another_bud"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="checkrun",
            name="is_scheduled",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="CheckPlan",
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
                (
                    "before_saving",
                    models.BooleanField(
                        default=False,
                        help_text="The editor runs them first, and asks if one fails.",
                        verbose_name="before saving",
                    ),
                ),
                (
                    "every",
                    models.CharField(
                        blank=True,
                        choices=[("", "Never"), ("day", "Every day"), ("week", "Every week")],
                        default="",
                        max_length=4,
                        verbose_name="on a schedule",
                    ),
                ),
                ("next_at", models.DateTimeField(db_index=True, null=True)),
                (
                    "trouble",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Why they did not run when they were due.",
                        max_length=300,
                    ),
                ),
                (
                    "bud",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="check_plan",
                        to="chat.bud",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                "verbose_name": "schedule of checks",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "check_plan_tenant_references"),
    ]
