"""Counters of the log, saved views, schedules and reviews."""

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0006_heads_of_chains"),
        ("workspaces", "0004_installation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RollupCursor",
            fields=[
                ("chain_id", models.UUIDField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField(default=0)),
                ("moved_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name="AuditHistogram",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("workspace_id", models.UUIDField()),
                (
                    "dimension",
                    models.CharField(
                        choices=[
                            ("all", "All"),
                            ("server", "Server"),
                            ("tool", "Tool"),
                            ("actor", "Actor"),
                            ("bud", "Bud"),
                            ("source", "Source"),
                            ("model", "Model"),
                            ("layer", "Layer"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "measure",
                    models.CharField(
                        choices=[("duration", "Duration"), ("wait", "Wait")], max_length=8
                    ),
                ),
                ("grain", models.CharField(choices=[("h", "hour"), ("d", "day")], max_length=1)),
                ("start", models.DateTimeField()),
                ("value", models.CharField(blank=True, max_length=256)),
                ("second", models.CharField(blank=True, max_length=254)),
                ("bucket", models.PositiveSmallIntegerField()),
                ("count", models.BigIntegerField()),
            ],
            options={
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "workspace_id",
                            "dimension",
                            "measure",
                            "grain",
                            "start",
                            "value",
                            "second",
                            "bucket",
                        ),
                        name="audit_histogram_once",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="AuditRollup",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "workspace_id",
                    models.UUIDField(help_text="Of a workspace, or the platform's chain."),
                ),
                (
                    "dimension",
                    models.CharField(
                        choices=[
                            ("all", "All"),
                            ("server", "Server"),
                            ("tool", "Tool"),
                            ("actor", "Actor"),
                            ("bud", "Bud"),
                            ("source", "Source"),
                            ("model", "Model"),
                            ("layer", "Layer"),
                        ],
                        max_length=8,
                    ),
                ),
                ("grain", models.CharField(choices=[("h", "hour"), ("d", "day")], max_length=1)),
                ("start", models.DateTimeField()),
                ("value", models.CharField(blank=True, max_length=256)),
                (
                    "second",
                    models.CharField(
                        blank=True,
                        help_text="A tool's server, an actor's name, a layer's rule.",
                        max_length=254,
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                ("outcome", models.CharField(blank=True, max_length=20)),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField(help_text="How many of them have a duration.")),
                ("duration_ms", models.BigIntegerField(help_text="The sum.")),
                (
                    "waited",
                    models.BigIntegerField(help_text="How many of them ended a wait for approval."),
                ),
                ("wait_ms", models.BigIntegerField(help_text="The sum.")),
            ],
            options={
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "workspace_id",
                            "dimension",
                            "grain",
                            "start",
                            "value",
                            "second",
                            "action",
                            "outcome",
                        ),
                        name="audit_rollup_once",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SignOff",
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
                ("workspace_id", models.UUIDField()),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("query", models.TextField(blank=True)),
                ("totals", models.JSONField(default=dict)),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("signed_by_id", models.UUIDField(null=True)),
                ("signed_by", models.CharField(max_length=254)),
                ("signed_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry_id",
                    models.UUIDField(help_text="The entry that says the same in the sealed log."),
                ),
            ],
            options={
                "ordering": ["-id"],
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace_id", "-id"], name="audit_sign_off_by_time")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ReportSchedule",
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
                ("name", models.CharField(max_length=80)),
                ("query", models.TextField(blank=True, help_text="Filters, as in the address.")),
                ("format", models.CharField(max_length=10)),
                (
                    "cadence",
                    models.CharField(
                        choices=[
                            ("daily", "every day"),
                            ("weekly", "every Monday"),
                            ("monthly", "on the first of the month"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[("mail", "by e-mail"), ("storage", "into the file store")],
                        max_length=8,
                    ),
                ),
                (
                    "recipients",
                    models.JSONField(blank=True, default=list, help_text="Ids of members."),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("next_run_at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
                ("last_run_at", models.DateTimeField(null=True)),
                ("last_ok", models.BooleanField(null=True)),
                ("last_result", models.CharField(blank=True, max_length=500)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
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
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["is_active", "next_run_at"], name="audit_schedule_due")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
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
                ("name", models.CharField(max_length=80)),
                (
                    "page",
                    models.CharField(
                        choices=[("log", "Log"), ("reports", "Reports")], max_length=8
                    ),
                ),
                ("query", models.TextField(blank=True, help_text="As in the address.")),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
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
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "owner", "page", "name"), name="audit_view_name_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
