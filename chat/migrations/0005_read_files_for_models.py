"""Files attached to messages, what was read of them, and which models see pictures."""

from pathlib import Path
from typing import Any

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models
from django.db.models import Exists, OuterRef

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


def mark_conversations_with_files(apps: Any, schema_editor: Any) -> None:
    """Conversations that have files already."""
    using = schema_editor.connection.alias
    files = apps.get_model("chat", "Artifact").unscoped.using(using)
    mine = files.filter(conversation_id=OuterRef("pk"), is_deleted=False)
    rows = apps.get_model("chat", "Conversation").unscoped.using(using)
    rows.filter(Exists(mine)).update(has_files=True)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0004_share_the_columns_of_the_outbox"),
        ("workspaces", "0003_account_addresses"),
    ]

    operations = [
        migrations.AddField(
            model_name="attachment",
            name="characters",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="Of the whole text of a file; model_text may hold less.",
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="file",
            field=models.JSONField(
                help_text="The version as calls and the log name it.", null=True
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="overview",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="What it reads instead, where the whole is too long.",
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="version",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.artifactversion",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="has_files",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Buds that make no files may read these.",
            ),
        ),
        migrations.AddField(
            model_name="providermodel",
            name="sees_pictures",
            field=models.BooleanField(
                blank=True,
                choices=[(True, "Yes"), (False, "No")],
                help_text="Unknown: the first picture tries it.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="attachment",
            name="server_id",
            field=models.UUIDField(help_text="None: a file.", null=True),
        ),
        migrations.AlterField(
            model_name="attachment",
            name="server_name",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name="attachment",
            name="uri",
            field=models.CharField(blank=True, max_length=2048),
        ),
        migrations.CreateModel(
            name="FileReading",
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
                    "text_path",
                    models.CharField(
                        blank=True,
                        help_text="Name of the text within the artifact storage.",
                        max_length=200,
                    ),
                ),
                ("characters", models.PositiveIntegerField(default=0)),
                ("lines", models.PositiveIntegerField(default=0)),
                (
                    "outline",
                    models.JSONField(
                        default=list,
                        help_text="Title and first line of each page, sheet, slide or heading.",
                    ),
                ),
                (
                    "is_cut",
                    models.BooleanField(
                        default=False, help_text="The file holds more than was kept."
                    ),
                ),
                (
                    "picture_path",
                    models.CharField(
                        blank=True,
                        help_text="Name of the picture within the artifact storage.",
                        max_length=200,
                    ),
                ),
                (
                    "width",
                    models.PositiveIntegerField(default=0, help_text="Of the picture, in points."),
                ),
                ("height", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True, help_text="Why it cannot be read.")),
                (
                    "version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reading",
                        to="chat.artifactversion",
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
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["text_path"], name="file_reading_text"),
                    models.Index(fields=["picture_path"], name="file_reading_picture"),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "file_tenant_references"),
        migrations.RunPython(mark_conversations_with_files, migrations.RunPython.noop),
    ]
