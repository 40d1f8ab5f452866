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
        ("chat", "0019_pins"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="bud",
            name="is_sandboxed",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Checks run with it: in its chats nothing is called that may change data.",
            ),
        ),
        migrations.CreateModel(
            name="BudCheck",
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
                ("question", models.TextField(verbose_name="question")),
                (
                    "calls",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Tools, with some arguments.",
                        verbose_name="expected calls",
                    ),
                ),
                (
                    "contains",
                    models.JSONField(blank=True, default=list, verbose_name="words of the answer"),
                ),
                (
                    "excludes",
                    models.JSONField(
                        blank=True, default=list, verbose_name="words the answer must not have"
                    ),
                ),
                (
                    "criterion",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="A sentence that a model judges the answer by.",
                        max_length=500,
                        verbose_name="criterion",
                    ),
                ),
                (
                    "recordings",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="What tools that may change data give, in place of being called.",
                    ),
                ),
                (
                    "bud",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="chat.bud",
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
                "verbose_name": "check",
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="CheckRun",
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
                    "version",
                    models.PositiveIntegerField(
                        help_text="The bud's version that was checked. Empty: an unsaved draft.",
                        null=True,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "note",
                    models.CharField(
                        blank=True, default="", help_text="Why it ended.", max_length=300
                    ),
                ),
                ("total", models.PositiveSmallIntegerField(default=0)),
                ("passed", models.PositiveSmallIntegerField(default=0)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "bud",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="check_runs",
                        to="chat.bud",
                    ),
                ),
                (
                    "draft",
                    models.ForeignKey(
                        help_text="The bud as it is checked, while the run lasts.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
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
                "ordering": ["-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="CheckResult",
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
                ("expected", models.JSONField(help_text="The check as it was then.")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("judging", "Being judged"),
                            ("passed", "Passed"),
                            ("failed", "Failed"),
                            ("cancelled", "Not run"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("begun_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "faults",
                    models.JSONField(default=list, help_text="Why it failed, in sentences."),
                ),
                (
                    "notes",
                    models.JSONField(default=list, help_text="What else is to be known of it."),
                ),
                ("answer", models.TextField(blank=True, default="")),
                ("calls", models.JSONField(default=list, help_text="What the bud called.")),
                (
                    "bud_check",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="results",
                        to="chat.budcheck",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat.conversation",
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
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="results",
                        to="chat.checkrun",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddIndex(
            model_name="checkrun",
            index=models.Index(fields=["bud", "-id"], name="check_runs_of_bud"),
        ),
        migrations.AddConstraint(
            model_name="checkrun",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "running")),
                fields=("bud",),
                name="check_run_one_of_bud",
            ),
        ),
        migrations.AddIndex(
            model_name="checkresult",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["conversation"],
                name="check_of_conversation",
            ),
        ),
        run_sql_file(SQL, "check_tenant_references"),
    ]
