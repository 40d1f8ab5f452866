from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets
from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0033_shared_model_providers"),
        ("workspaces", "0010_share_chats"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="shared_at",
            field=models.DateTimeField(
                editable=False,
                help_text="Others may read it as it was then; None: it is not shared.",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="SharedChat",
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
                    "audience",
                    models.CharField(
                        choices=[
                            ("people", "Chosen people"),
                            ("workspace", "Everyone in the workspace"),
                            ("link", "Anyone with the link"),
                        ],
                        max_length=10,
                        verbose_name="who can read it",
                    ),
                ),
                ("token_hash", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "token",
                    workspaces.secrets.EncryptedTextField(
                        blank=True,
                        default=None,
                        editable=False,
                        help_text="Its owner can copy the link at any time.",
                        null=True,
                    ),
                ),
                ("with_files", models.BooleanField(default=False, verbose_name="with files")),
                (
                    "with_calls",
                    models.BooleanField(
                        default=False,
                        help_text="What tools were asked, and what they answered.",
                        verbose_name="with tool calls",
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True, verbose_name="ends")),
                (
                    "shared_at",
                    models.DateTimeField(
                        help_text="When its text was last updated.", verbose_name="shared"
                    ),
                ),
                (
                    "conversation",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shared",
                        to="chat.conversation",
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
                "verbose_name": "shared chat",
                "verbose_name_plural": "shared chats",
                "ordering": ["-created_at", "-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SharedChatReader",
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
                    "person",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "shared",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="readers",
                        to="chat.sharedchat",
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
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SharedChatText",
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
                ("end", models.UUIDField(help_text="The message that it ends with.")),
                ("document", models.JSONField()),
                (
                    "shared",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="text",
                        to="chat.sharedchat",
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
        migrations.AddIndex(
            model_name="sharedchat",
            index=models.Index(fields=["expires_at"], name="shared_chat_ends"),
        ),
        migrations.AddConstraint(
            model_name="sharedchat",
            constraint=models.CheckConstraint(
                condition=models.Q(("audience__in", ["people", "workspace", "link"])),
                name="shared_chat_audience_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="sharedchatreader",
            constraint=models.UniqueConstraint(
                fields=("shared", "person"), name="shared_chat_reader_once"
            ),
        ),
        run_sql_file(SQL, "shared_chat_tenant_references"),
    ]
