"""Files that buds know."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0013_version_and_share_buds"),
        ("workspaces", "0003_account_addresses"),
    ]

    operations = [
        migrations.AddField(
            model_name="bud",
            name="has_knowledge",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Whether it has files of its own; a draft: whether its bud has.",
            ),
        ),
        migrations.CreateModel(
            name="KnowledgeFile",
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
                ("name", models.CharField(help_text="With its extension.", max_length=200)),
                (
                    "content_type",
                    models.CharField(help_text="Found in the content itself.", max_length=100),
                ),
                ("size", models.PositiveBigIntegerField(help_text="Bytes.")),
                ("sha256", models.CharField(max_length=64)),
                (
                    "path",
                    models.CharField(help_text="Name within the artifact storage.", max_length=200),
                ),
                ("characters", models.PositiveIntegerField()),
                ("lines", models.PositiveIntegerField()),
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
                ("added_by", models.CharField(help_text="As the log names them.", max_length=254)),
                (
                    "bud",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="knowledge",
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
                "ordering": ["name"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="KnowledgePassage",
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
                ("position", models.PositiveIntegerField()),
                ("first_line", models.PositiveIntegerField()),
                ("last_line", models.PositiveIntegerField()),
                ("text", models.TextField()),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passages",
                        to="chat.knowledgefile",
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
                "ordering": ["file_id", "position"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddIndex(
            model_name="knowledgefile",
            index=models.Index(fields=["path"], name="knowledge_file_path"),
        ),
        migrations.AddConstraint(
            model_name="knowledgefile",
            constraint=models.UniqueConstraint(fields=("bud", "name"), name="knowledge_name_once"),
        ),
        migrations.AddConstraint(
            model_name="knowledgepassage",
            constraint=models.UniqueConstraint(
                fields=("file", "position"), name="knowledge_passage_once"
            ),
        ),
        run_sql_file(SQL, "knowledge"),
    ]
