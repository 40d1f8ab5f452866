"""Vectors of passages, for files that are searched by meaning."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0025_compare_models"),
        ("workspaces", "0006_keep_the_theme_of_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprovider",
            name="embedding_model",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="With one, buds that use this provider also find passages that say the same in other words. Trellis then sends the whole text of their knowledge files to this provider, and each search. Leave empty to search by words only.",
                max_length=200,
            ),
        ),
        migrations.CreateModel(
            name="KnowledgePreparation",
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
                ("model", models.CharField(max_length=200)),
                ("passages", models.PositiveIntegerField(help_text="Of the file.")),
                (
                    "done",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Passages that need no more work, from the first one on.",
                    ),
                ),
                ("numbers", models.PositiveIntegerField(default=0, help_text="In each vector.")),
                ("tokens", models.PositiveBigIntegerField(default=0)),
                ("cost", models.DecimalField(decimal_places=6, max_digits=16, null=True)),
                ("fault", models.CharField(blank=True, max_length=300)),
                ("failures", models.PositiveSmallIntegerField(default=0, help_text="In a row.")),
                ("due_at", models.DateTimeField(help_text="When to go on.")),
                (
                    "alive_until",
                    models.DateTimeField(help_text="Until then a process works on it.", null=True),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "file",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preparation",
                        to="chat.knowledgefile",
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
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
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="PassageVector",
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
                ("position", models.PositiveIntegerField(help_text="Of the passage in its file.")),
                ("signs", models.BinaryField()),
                ("numbers", models.BinaryField()),
                (
                    "preparation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vectors",
                        to="chat.knowledgepreparation",
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("preparation", "position"), name="passage_vector_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "preparation_tenant_references"),
    ]
