"""Buds, conversations, turns, tool calls, files, model providers, and webhooks."""

from pathlib import Path

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets
from workspaces.database.migration_operations import TablesUnlessThere
from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("workspaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Bud",
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
                ("slug", models.SlugField(max_length=60)),
                ("name", models.CharField(max_length=100)),
                ("description", models.CharField(blank=True, max_length=300)),
                ("avatar", models.CharField(default="🌱", help_text="One emoji.", max_length=8)),
                (
                    "system_prompt",
                    models.TextField(
                        blank=True, validators=[django.core.validators.MaxLengthValidator(50000)]
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True, help_text="Empty: the provider's default model.", max_length=200
                    ),
                ),
                ("parameters", models.JSONField(blank=True, default=dict)),
                ("starter_prompts", models.JSONField(blank=True, default=list)),
                (
                    "mcp_config",
                    models.JSONField(blank=True, default=dict, verbose_name="MCP configuration"),
                ),
                (
                    "tool_protocol",
                    models.CharField(
                        choices=[
                            ("auto", "Whatever the model understands"),
                            ("native", "Function calling"),
                            ("fenced_json", "Fenced JSON, for models without function calling"),
                        ],
                        default="auto",
                        max_length=12,
                    ),
                ),
                (
                    "makes_artifacts",
                    models.BooleanField(
                        default=False,
                        help_text="Offers tools to create and change files of the conversation.",
                    ),
                ),
                ("is_archived", models.BooleanField(default=False)),
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
                    models.UniqueConstraint(fields=("workspace", "slug"), name="bud_slug_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Conversation",
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
                ("title", models.CharField(blank=True, max_length=200)),
                (
                    "title_source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("message", "message"),
                            ("model", "model"),
                            ("person", "person"),
                        ],
                        default="",
                        max_length=10,
                    ),
                ),
                ("client_id", models.CharField(blank=True, max_length=64, null=True)),
                ("forked_from", models.UUIDField(editable=False, null=True)),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0, editable=False)),
                ("cached_tokens", models.PositiveBigIntegerField(default=0, editable=False)),
                ("completion_tokens", models.PositiveBigIntegerField(default=0, editable=False)),
                (
                    "cost",
                    models.DecimalField(
                        decimal_places=6,
                        editable=False,
                        help_text="None: no prices.",
                        max_digits=14,
                        null=True,
                    ),
                ),
                ("mcp_config_overrides", models.JSONField(blank=True, default=dict)),
                ("is_pinned", models.BooleanField(default=False)),
                ("is_archived", models.BooleanField(default=False)),
                (
                    "event_seq",
                    models.PositiveBigIntegerField(
                        default=0,
                        editable=False,
                        help_text="Number of the newest event; rows change with it.",
                    ),
                ),
                ("last_message_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "bud",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="chat.bud"
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
                "ordering": ["-last_message_at", "-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(
                        fields=["workspace", "owner", "-last_message_at", "-id"],
                        name="conversation_list",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "client_id"), name="conversation_made_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Artifact",
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
                    "newest",
                    models.PositiveIntegerField(
                        default=0, help_text="Number of the newest version."
                    ),
                ),
                ("is_deleted", models.BooleanField(default=False)),
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
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="artifacts",
                        to="chat.conversation",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_deleted", False)),
                        fields=("conversation", "name"),
                        name="artifact_name_once",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Message",
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
                    "role",
                    models.CharField(
                        choices=[("user", "user"), ("assistant", "assistant")], max_length=10
                    ),
                ),
                (
                    "step",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Which step of the turn."
                    ),
                ),
                ("text", models.TextField(blank=True)),
                (
                    "reasoning",
                    models.TextField(
                        blank=True, help_text="What the model thought before it spoke."
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("streaming", "streaming"),
                            ("complete", "complete"),
                            ("stopped", "stopped"),
                            ("failed", "failed"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "order_key",
                    models.PositiveBigIntegerField(help_text="Place within the conversation."),
                ),
                ("client_id", models.CharField(blank=True, max_length=64, null=True)),
                (
                    "json_meta",
                    models.JSONField(
                        default=dict,
                        help_text="What the model asked for: tool_calls as it worded them.",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chat.conversation",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="chat.message",
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
                "ordering": ["order_key", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["conversation", "order_key"], name="message_order")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "client_id"), name="message_stored_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="conversation",
            name="leaf",
            field=models.ForeignKey(
                editable=False,
                help_text="Where the path ends that is shown, and that the next message goes on from.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chat.message",
            ),
        ),
        migrations.CreateModel(
            name="Attachment",
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
                ("position", models.PositiveSmallIntegerField()),
                ("server_id", models.UUIDField()),
                ("server_name", models.CharField(max_length=200)),
                ("resource_id", models.UUIDField(null=True)),
                ("uri", models.CharField(max_length=2048)),
                ("title", models.CharField(blank=True, max_length=256)),
                ("mime_type", models.CharField(blank=True, max_length=200)),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "queued"), ("ready", "ready"), ("failed", "failed")],
                        default="queued",
                        max_length=10,
                    ),
                ),
                (
                    "content",
                    models.JSONField(default=list, help_text="Content parts as they were read."),
                ),
                (
                    "model_text",
                    models.TextField(blank=True, help_text="What the model reads of it."),
                ),
                ("error", models.TextField(blank=True)),
                ("read_at", models.DateTimeField(null=True)),
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
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="chat.message",
                    ),
                ),
            ],
            options={
                "ordering": ["message_id", "position"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "position"), name="attachment_place_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ModelProvider",
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
                ("name", models.CharField(max_length=100)),
                (
                    "base_url",
                    models.URLField(
                        help_text="Up to and including /v1, for most providers.",
                        max_length=500,
                        verbose_name="base URL",
                    ),
                ),
                (
                    "api_key",
                    workspaces.secrets.EncryptedTextField(
                        blank=True, default=None, null=True, verbose_name="API key"
                    ),
                ),
                ("default_model", models.CharField(max_length=200)),
                ("is_active", models.BooleanField(default=True)),
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
                        fields=("workspace", "name"), name="model_provider_name_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="bud",
            name="provider",
            field=models.ForeignKey(
                blank=True,
                help_text="Empty: the platform's own model.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="buds",
                to="chat.modelprovider",
            ),
        ),
        migrations.CreateModel(
            name="ProviderModel",
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
                (
                    "context_tokens",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="How many tokens it reads and writes at most.",
                        null=True,
                    ),
                ),
                (
                    "prompt_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million tokens.",
                        max_digits=12,
                        null=True,
                    ),
                ),
                (
                    "cached_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million prompt tokens that came out of the provider's cache.",
                        max_digits=12,
                        null=True,
                    ),
                ),
                (
                    "completion_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million tokens.",
                        max_digits=12,
                        null=True,
                    ),
                ),
                (
                    "learned_protocol",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("auto", "auto"),
                            ("native", "native"),
                            ("fenced_json", "fenced_json"),
                        ],
                        help_text="What it was found to need; empty: nothing has been found out.",
                        max_length=12,
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: the platform's own provider.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="known_models",
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
                "ordering": ["model", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("provider", "model"), name="provider_model_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("provider", None)),
                        fields=("workspace", "model"),
                        name="platform_model_once",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="QueuedMessage",
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
                ("client_id", models.CharField(max_length=64)),
                ("text", models.TextField()),
                (
                    "attachments",
                    models.JSONField(default=list, help_text="References, as they were sent."),
                ),
                (
                    "is_next",
                    models.BooleanField(
                        default=False,
                        help_text="Sent even if the running turn is stopped: that was the wish.",
                    ),
                ),
                ("order_key", models.PositiveIntegerField()),
                ("source", models.CharField(max_length=10)),
                ("ip_address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("token_id", models.UUIDField(null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queue",
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
            ],
            options={
                "ordering": ["order_key", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "client_id"), name="queued_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ToolCall",
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
                    "position",
                    models.PositiveSmallIntegerField(help_text="Order in which the model asked."),
                ),
                ("provider_call_id", models.CharField(max_length=200)),
                (
                    "function_name",
                    models.CharField(help_text="As the model wrote it.", max_length=200),
                ),
                ("server_id", models.UUIDField(null=True)),
                ("server_name", models.CharField(blank=True, max_length=200)),
                ("tool_id", models.UUIDField(null=True)),
                ("tool_name", models.CharField(blank=True, max_length=256)),
                ("tool_title", models.CharField(blank=True, max_length=256)),
                (
                    "builtin",
                    models.CharField(
                        blank=True,
                        help_text="Name of the built-in tool that was asked for, if one.",
                        max_length=40,
                    ),
                ),
                (
                    "artifact",
                    models.JSONField(
                        help_text="The artifact's version that it sends, or that it made.",
                        null=True,
                    ),
                ),
                ("definition_hash", models.CharField(blank=True, max_length=64)),
                ("annotations", models.JSONField(default=dict)),
                ("input_schema", models.JSONField(null=True)),
                ("arguments", models.JSONField(default=dict)),
                ("proposed_arguments", models.JSONField(default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("waiting_for_approval", "waiting_for_approval"),
                            ("waiting_for_input", "waiting_for_input"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("refused", "refused"),
                            ("cancelled", "cancelled"),
                            ("outcome_unknown", "outcome_unknown"),
                            ("marked_done", "marked_done"),
                            ("given_up", "given_up"),
                            ("repeated", "repeated"),
                        ],
                        default="queued",
                        max_length=20,
                    ),
                ),
                ("approval_rule", models.CharField(blank=True, max_length=100)),
                ("approval_reason", models.TextField(blank=True)),
                ("approval_expires_at", models.DateTimeField(null=True)),
                (
                    "approval_id",
                    models.UUIDField(help_text="The single-use approval at the gate.", null=True),
                ),
                (
                    "decision",
                    models.CharField(
                        blank=True,
                        choices=[("approved", "approved"), ("refused", "refused")],
                        max_length=10,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("decision_note", models.TextField(blank=True)),
                ("resolution_note", models.TextField(blank=True)),
                (
                    "resolution_due_at",
                    models.DateTimeField(
                        help_text="Until when a person may say what becomes of it.", null=True
                    ),
                ),
                (
                    "checkpoint",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                (
                    "was_cached",
                    models.BooleanField(
                        default=False, help_text="The result is that of an earlier, identical call."
                    ),
                ),
                (
                    "result",
                    models.JSONField(
                        help_text="Content parts, and whether they were cut.", null=True
                    ),
                ),
                (
                    "model_text",
                    models.TextField(blank=True, help_text="What the model reads as the result."),
                ),
                ("error", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("duration_ms", models.PositiveIntegerField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="chat.message",
                    ),
                ),
                (
                    "repeats",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat.toolcall",
                    ),
                ),
                (
                    "resolved_by",
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
                "ordering": ["message_id", "position"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "position"), name="tool_call_place_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ArtifactVersion",
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
                    "number",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
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
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("model", "model"),
                            ("tool", "tool"),
                            ("upload", "upload"),
                            ("edit", "edit"),
                            ("restore", "restore"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "artifact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="chat.artifact",
                    ),
                ),
                (
                    "made_by",
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
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat.message",
                    ),
                ),
                (
                    "tool_call",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat.toolcall",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["path"], name="artifact_version_path")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("artifact", "number"), name="artifact_version_once"
                    ),
                    models.UniqueConstraint(
                        fields=("tool_call",), name="artifact_version_once_per_call"
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Turn",
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
                    "source",
                    models.CharField(
                        choices=[
                            ("chat", "chat"),
                            ("web", "web"),
                            ("api", "api"),
                            ("admin", "admin"),
                            ("gateway", "gateway"),
                            ("task", "task"),
                            ("command", "command"),
                        ],
                        max_length=10,
                    ),
                ),
                ("ip_address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("token_id", models.UUIDField(null=True)),
                ("client_id", models.CharField(blank=True, max_length=64, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("waiting_for_approval", "waiting_for_approval"),
                            ("waiting_for_input", "waiting_for_input"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("interrupted", "interrupted"),
                        ],
                        default="queued",
                        max_length=20,
                    ),
                ),
                ("error_code", models.CharField(blank=True, max_length=50)),
                ("error_message", models.TextField(blank=True)),
                ("can_retry", models.BooleanField(default=False)),
                ("notice", models.TextField(blank=True)),
                (
                    "has_read_untrusted",
                    models.BooleanField(
                        default=False,
                        help_text="Something from outside reached the model in this turn.",
                    ),
                ),
                (
                    "trims_history",
                    models.BooleanField(
                        default=False,
                        help_text="The model could not read it all: send it less of what is older.",
                    ),
                ),
                ("stop_requested_at", models.DateTimeField(null=True)),
                ("lease_owner", models.CharField(blank=True, max_length=64)),
                (
                    "lease_token",
                    models.PositiveIntegerField(default=0, help_text="Grows with each holder."),
                ),
                ("lease_until", models.DateTimeField(null=True)),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("model", models.CharField(blank=True, max_length=200)),
                (
                    "work_ms",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Time spent, waits left out."
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(default=0)),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("completion_tokens", models.PositiveIntegerField(default=0)),
                ("cost", models.DecimalField(decimal_places=6, max_digits=14, null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turns",
                        to="chat.conversation",
                    ),
                ),
                (
                    "user_message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat.message",
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
                "indexes": [models.Index(fields=["status", "lease_until"], name="turn_orphans")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                ["queued", "running", "waiting_for_approval", "waiting_for_input"],
                            )
                        ),
                        fields=("conversation",),
                        name="turn_one_active",
                    ),
                    models.UniqueConstraint(
                        fields=("conversation", "client_id"), name="turn_begun_once"
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="toolcall",
            name="turn",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tool_calls",
                to="chat.turn",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="turn",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="chat.turn",
            ),
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
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
                ("url", models.URLField(max_length=500, verbose_name="URL")),
                (
                    "secret",
                    workspaces.secrets.EncryptedTextField(
                        blank=True, default=None, null=True, verbose_name="signing secret"
                    ),
                ),
                (
                    "events",
                    models.JSONField(
                        default=list, help_text="Kinds of events; see the API's pages."
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("last_error", models.CharField(blank=True, editable=False, max_length=200)),
                ("last_delivered_at", models.DateTimeField(editable=False, null=True)),
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
            name="WebhookDelivery",
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
                ("event", models.CharField(max_length=40)),
                ("payload", models.JSONField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("delivered", "delivered"),
                            ("given_up", "given_up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(null=True)),
                ("delivered_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
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
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="chat.webhookendpoint",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["status", "next_attempt_at"], name="webhook_due")],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                condition=models.Q(("role", "assistant")),
                fields=("turn", "step"),
                name="message_one_per_step",
            ),
        ),
        run_sql_file(SQL, "tenant_references"),
    ]
    operations = [TablesUnlessThere(operations)]
