"""Copies of people's data, which they download."""

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
        ("chat", "0038_import_chats"),
        ("workspaces", "0011_shortcuts_of_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DataCopy",
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
                    "with_files",
                    models.BooleanField(
                        default=True, help_text="Files of chats are in it, with all their versions."
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("ready", "ready"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("erased", "erased"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("error", models.TextField(blank=True, help_text="Why it could not be made.")),
                (
                    "total",
                    models.PositiveIntegerField(
                        default=0, help_text="Chats that are to be copied."
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(default=0, help_text="Of them, those copied."),
                ),
                (
                    "shown",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Chats that are written by now, if the round that writes them ends.",
                    ),
                ),
                (
                    "cursor",
                    models.UUIDField(
                        editable=False, help_text="The last chat that is copied.", null=True
                    ),
                ),
                (
                    "files",
                    models.PositiveIntegerField(default=0, help_text="Versions of files in it."),
                ),
                (
                    "missing",
                    models.JSONField(
                        default=list,
                        help_text="The first files that could not be read, with their chats.",
                    ),
                ),
                (
                    "size",
                    models.PositiveBigIntegerField(default=0, help_text="Bytes of all parts."),
                ),
                (
                    "alive_until",
                    models.DateTimeField(
                        help_text="Until then the process that makes it is taken to be alive.",
                        null=True,
                    ),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "expires_at",
                    models.DateTimeField(
                        db_index=True,
                        help_text="Its files are erased then. None: it is not ready.",
                        null=True,
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
        migrations.CreateModel(
            name="DataCopyPart",
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
                ("number", models.PositiveIntegerField()),
                (
                    "path",
                    models.CharField(help_text="Name within the artifact storage.", max_length=200),
                ),
                ("size", models.PositiveBigIntegerField(help_text="Bytes.")),
                ("sha256", models.CharField(max_length=64)),
                ("chats", models.PositiveIntegerField(default=0)),
                ("entries", models.PositiveIntegerField(default=0, help_text="Files in the ZIP.")),
                (
                    "copy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="chat.datacopy",
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
                "ordering": ["number"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddIndex(
            model_name="datacopy",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=["alive_until"],
                name="data_copy_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="datacopy",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=("workspace", "owner"),
                name="data_copy_one_at_a_time",
            ),
        ),
        migrations.AddIndex(
            model_name="datacopypart",
            index=models.Index(fields=["path"], name="data_copy_part_path"),
        ),
        migrations.AddConstraint(
            model_name="datacopypart",
            constraint=models.UniqueConstraint(
                fields=("copy", "number"), name="data_copy_part_once"
            ),
        ),
        migrations.AddField(
            model_name="chatimport",
            name="files",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Versions of files that came with the chats."
            ),
        ),
        migrations.AddField(
            model_name="chatimport",
            name="files_left_out",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        run_sql_file(SQL, "data_copy_tenant_references"),
    ]
