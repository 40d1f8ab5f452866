"""Chats that people import."""

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
        ("chat", "0037_temporary_conversations"),
        ("workspaces", "0009_signed_out_everywhere_else"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ChatImport",
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
                ("file_name", models.CharField(max_length=200)),
                (
                    "path",
                    models.CharField(
                        blank=True,
                        help_text="Name of the file within the artifact storage, until it is read.",
                        max_length=200,
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("chatgpt", "chatgpt"),
                            ("claude", "claude"),
                            ("trellis", "trellis"),
                        ],
                        help_text="Who wrote the file. Empty: it is not known yet.",
                        max_length=10,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("removed", "removed"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "error",
                    models.TextField(blank=True, help_text="Why nothing of the file was imported."),
                ),
                ("total", models.PositiveIntegerField(default=0, help_text="Chats in the file.")),
                (
                    "position",
                    models.PositiveIntegerField(default=0, help_text="Of them, those looked at."),
                ),
                ("imported", models.PositiveIntegerField(default=0)),
                (
                    "messages",
                    models.PositiveIntegerField(default=0, help_text="In the chats that came."),
                ),
                ("left_out", models.PositiveIntegerField(default=0)),
                (
                    "reasons",
                    models.JSONField(
                        default=list,
                        help_text="The first chats that were left out, with the reason for each.",
                    ),
                ),
                (
                    "alive_until",
                    models.DateTimeField(
                        help_text="Until then the process that reads it is taken to be alive.",
                        null=True,
                    ),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "removed_at",
                    models.DateTimeField(
                        help_text="What was deleted since then can be brought back as one.",
                        null=True,
                    ),
                ),
                (
                    "bud",
                    models.ForeignKey(
                        help_text="Who goes on with the chats.",
                        on_delete=django.db.models.deletion.PROTECT,
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
        migrations.AddField(
            model_name="conversation",
            name="chat_import",
            field=models.ForeignKey(
                editable=False,
                help_text="The import that it came with. None: it began here, or the import is forgotten.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="conversations",
                to="chat.chatimport",
            ),
        ),
        migrations.AddIndex(
            model_name="chatimport",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=["alive_until"],
                name="chat_import_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="chatimport",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=("workspace", "owner"),
                name="chat_import_one_at_a_time",
            ),
        ),
        run_sql_file(SQL, "import_tenant_references"),
    ]
