"""Servers, what they offer, who may use it, sign-ins, and the trace."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets
from workspaces.database.migration_operations import TablesUnlessThere
from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("workspaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GlobalServer",
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
                ("name", models.CharField(max_length=60, unique=True)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("auto", "Automatic"),
                            ("streamable_http", "Streamable HTTP"),
                            ("sse", "HTTP with SSE"),
                            ("websocket", "WebSocket"),
                            ("stdio", "Program"),
                        ],
                        max_length=20,
                    ),
                ),
                ("target_label", models.CharField(blank=True, max_length=500)),
                ("definition_hash", models.CharField(max_length=64)),
                (
                    "is_required",
                    models.BooleanField(
                        default=False, help_text="Every workspace has it, and cannot switch it off."
                    ),
                ),
                (
                    "is_present",
                    models.BooleanField(default=True, help_text="Whether the file still names it."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "global server",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="StdioProgram",
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
                ("slug", models.SlugField(unique=True)),
                ("title", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True)),
                (
                    "command",
                    models.CharField(
                        help_text="An absolute path, or the word python for the platform's own interpreter.",
                        max_length=500,
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='A list of texts; "{name}" is replaced by that parameter.',
                        verbose_name="arguments",
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='A list of {"name", "title", "type": "word" | "integer" | "choice", …}.',
                    ),
                ),
                (
                    "env_names",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names of variables that a workspace may set.",
                        verbose_name="environment",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                ("file_hash", models.CharField(blank=True, editable=False, max_length=64)),
                ("problem", models.TextField(blank=True, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "program",
                "verbose_name_plural": "program catalogue",
                "ordering": ["title"],
            },
        ),
        migrations.CreateModel(
            name="McpServer",
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
                    "name",
                    models.CharField(
                        help_text="Shown to people, and put before the names of its tools.",
                        max_length=60,
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("global", "The platform"),
                            ("workspace", "Workspace"),
                            ("personal", "Personal"),
                        ],
                        default="workspace",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("hosted_by", models.CharField(blank=True, editable=False, max_length=10)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("auto", "Automatic"),
                            ("streamable_http", "Streamable HTTP"),
                            ("sse", "HTTP with SSE"),
                            ("websocket", "WebSocket"),
                            ("stdio", "Program"),
                        ],
                        default="auto",
                        max_length=20,
                    ),
                ),
                (
                    "protocol",
                    models.CharField(
                        choices=[
                            ("auto", "Automatic"),
                            ("legacy", "With sessions (until 2025-11-25)"),
                            ("2026-07-28", "Stateless (2026-07-28)"),
                        ],
                        default="auto",
                        max_length=12,
                    ),
                ),
                ("url", models.CharField(blank=True, max_length=2048, verbose_name="URL")),
                ("parameters", models.JSONField(blank=True, default=dict)),
                (
                    "headers",
                    workspaces.secrets.EncryptedJSONField(blank=True, default=None, null=True),
                ),
                (
                    "env",
                    workspaces.secrets.EncryptedJSONField(
                        blank=True, default=None, null=True, verbose_name="environment"
                    ),
                ),
                (
                    "auth_type",
                    models.CharField(
                        choices=[
                            ("none", "None"),
                            ("bearer", "Bearer token"),
                            ("api_key", "API key in a header"),
                            ("basic", "User name and password"),
                            ("oauth", "Sign-in (OAuth)"),
                            ("oauth_client", "OAuth without a person"),
                        ],
                        default="none",
                        max_length=20,
                        verbose_name="authentication",
                    ),
                ),
                (
                    "auth_config",
                    workspaces.secrets.EncryptedJSONField(
                        blank=True, default=None, null=True, verbose_name="credentials"
                    ),
                ),
                (
                    "account_use",
                    models.CharField(
                        choices=[
                            ("user", "Each person signs in"),
                            ("workspace", "One account for everybody"),
                        ],
                        default="user",
                        max_length=10,
                        verbose_name="accounts",
                    ),
                ),
                (
                    "oauth_scope",
                    models.CharField(
                        blank=True,
                        help_text="What is asked for when somebody signs in; empty: what the server says it needs.",
                        max_length=1000,
                        verbose_name="scopes",
                    ),
                ),
                ("connection_config", models.JSONField(blank=True, default=dict)),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                ("is_blocked", models.BooleanField(default=False, editable=False)),
                (
                    "trusts_annotations",
                    models.BooleanField(
                        default=False,
                        help_text="Whether what the server says about its tools may make them run without asking.",
                    ),
                ),
                (
                    "allows_new_tools",
                    models.BooleanField(
                        default=False,
                        help_text="Whether tools that appear later may be used without somebody accepting them.",
                    ),
                ),
                (
                    "answers_elicitation",
                    models.BooleanField(
                        default=True,
                        help_text="Whether the server may ask the person questions while a tool runs.",
                        verbose_name="may ask people",
                    ),
                ),
                (
                    "uses_instructions",
                    models.BooleanField(
                        default=False,
                        help_text="Whether the server's own instructions are shown to the model, marked as the server's.",
                    ),
                ),
                (
                    "sampling",
                    models.CharField(
                        choices=[
                            ("off", "Never"),
                            ("ask", "Ask the person"),
                            ("auto", "Within the budget, without asking"),
                        ],
                        default="off",
                        help_text="Whether the server may have the model write something for it.",
                        max_length=5,
                        verbose_name="may ask the model",
                    ),
                ),
                (
                    "sampling_daily_tokens",
                    models.PositiveIntegerField(
                        default=20000,
                        help_text="What its requests to the model may cost in a day, in tokens.",
                    ),
                ),
                ("sampling_provider_id", models.UUIDField(blank=True, null=True)),
                ("sampling_model", models.CharField(blank=True, max_length=200)),
                (
                    "roots",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='Folders the server is told it may work in: a list of {"uri", "name"}.',
                    ),
                ),
                (
                    "log_level",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "None"),
                            ("debug", "Debug"),
                            ("info", "Info"),
                            ("notice", "Notice"),
                            ("warning", "Warning"),
                            ("error", "Error"),
                        ],
                        default="info",
                        max_length=10,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("disconnected", "Disconnected"),
                            ("connecting", "Connecting"),
                            ("connected", "Connected"),
                            ("auth_required", "Needs sign-in"),
                            ("error", "Error"),
                        ],
                        default="disconnected",
                        editable=False,
                        max_length=15,
                    ),
                ),
                ("status_reason", models.TextField(blank=True, editable=False)),
                ("last_connected_at", models.DateTimeField(editable=False, null=True)),
                ("last_checked_at", models.DateTimeField(editable=False, null=True)),
                ("next_check_at", models.DateTimeField(editable=False, null=True)),
                ("consecutive_failures", models.PositiveIntegerField(default=0, editable=False)),
                ("latency_ms", models.PositiveIntegerField(editable=False, null=True)),
                ("server_info", models.JSONField(default=dict, editable=False)),
                ("protocol_revision", models.CharField(blank=True, editable=False, max_length=20)),
                ("resolved_transport", models.CharField(blank=True, editable=False, max_length=20)),
                ("capabilities", models.JSONField(default=dict, editable=False)),
                ("instructions", models.TextField(blank=True, editable=False)),
                ("tools_listed_at", models.DateTimeField(editable=False, null=True)),
                ("lists_stale_at", models.DateTimeField(editable=False, null=True)),
                (
                    "global_server",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_servers.globalserver",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        editable=False,
                        null=True,
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
                (
                    "program",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="mcp_servers.stdioprogram",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP server",
                "verbose_name_plural": "MCP servers",
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(
                        fields=["is_active", "next_check_at"], name="mcp_server_due_for_check"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", True)),
                        fields=("workspace", "name"),
                        name="mcp_server_name_in_workspace",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", False)),
                        fields=("workspace", "owner", "name"),
                        name="mcp_server_name_of_owner",
                    ),
                    models.UniqueConstraint(
                        fields=("workspace", "global_server"), name="mcp_server_global_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("owner__isnull", False), ("scope", "personal")),
                            models.Q(
                                models.Q(("scope", "personal"), _negated=True),
                                ("owner__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="mcp_server_personal_has_owner",
                    ),
                    models.UniqueConstraint(
                        fields=("workspace", "id"), name="mcp_server_id_in_workspace"
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="McpTool",
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
                ("name", models.CharField(editable=False, max_length=256)),
                ("title", models.CharField(blank=True, editable=False, max_length=256)),
                ("description", models.TextField(blank=True, editable=False)),
                ("input_schema", models.JSONField(default=dict, editable=False)),
                ("output_schema", models.JSONField(editable=False, null=True)),
                ("annotations", models.JSONField(default=dict, editable=False)),
                ("meta", models.JSONField(default=dict, editable=False)),
                ("icons", models.JSONField(default=list, editable=False)),
                ("task_support", models.CharField(blank=True, editable=False, max_length=10)),
                ("warnings", models.JSONField(default=list, editable=False)),
                ("renamed_from", models.CharField(blank=True, editable=False, max_length=256)),
                ("is_enabled", models.BooleanField(default=True, verbose_name="switched on")),
                (
                    "approval_override",
                    models.CharField(
                        choices=[
                            ("inherit", "Default"),
                            ("auto", "Runs by itself"),
                            ("confirm", "Asks first"),
                            ("deny", "Blocked"),
                        ],
                        default="inherit",
                        max_length=10,
                        verbose_name="approval",
                    ),
                ),
                (
                    "cache_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Seconds for which the result of an identical call is used again; only for tools that just read.",
                        null=True,
                        verbose_name="keep results for",
                    ),
                ),
                ("definition_hash", models.CharField(editable=False, max_length=64)),
                ("approved_hash", models.CharField(blank=True, editable=False, max_length=64)),
                ("approved_definition", models.JSONField(default=dict, editable=False)),
                ("problem", models.TextField(blank=True, editable=False)),
                ("first_seen_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField(editable=False)),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "server",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tools",
                        to="mcp_servers.mcpserver",
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
                "verbose_name": "tool",
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("server", "name"), name="mcp_tool_name_in_server"
                    ),
                    models.UniqueConstraint(
                        fields=("workspace", "id"), name="mcp_tool_id_in_workspace"
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="OAuthClient",
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
                ("issuer", models.CharField(max_length=2048)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("registered", "Entered by an administrator"),
                            ("document", "Client ID metadata document"),
                            ("dynamic", "Registered by itself"),
                        ],
                        max_length=10,
                    ),
                ),
                ("client_id", models.CharField(max_length=2048)),
                (
                    "client_secret",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                ("auth_method", models.CharField(blank=True, max_length=30)),
                ("expires_at", models.DateTimeField(null=True)),
                ("redirect_uris", models.JSONField(default=list)),
                ("metadata", models.JSONField(default=dict)),
                ("resource", models.CharField(max_length=2048)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.mcpserver",
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
                "verbose_name": "OAuth client",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("server", "issuer"), name="oauth_client_per_issuer"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("issuer", ""), _negated=True),
                        name="oauth_client_has_issuer",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="OAuthAttempt",
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
                ("for_workspace_account", models.BooleanField(default=False)),
                ("state_hash", models.CharField(max_length=64, unique=True)),
                ("session_hash", models.CharField(max_length=64)),
                (
                    "verifier",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                ("issuer", models.CharField(max_length=2048)),
                ("token_endpoint", models.CharField(max_length=2048)),
                ("endpoint", models.CharField(max_length=2048)),
                ("redirect_uri", models.CharField(max_length=2048)),
                ("resource", models.CharField(max_length=2048)),
                ("scope", models.CharField(blank=True, max_length=4000)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.mcpserver",
                    ),
                ),
                (
                    "user",
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
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.oauthclient",
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in attempt",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["expires_at"], name="oauth_attempt_expiry")],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="OAuthGrant",
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
                ("issuer", models.CharField(max_length=2048)),
                ("token_endpoint", models.CharField(max_length=2048)),
                ("endpoint", models.CharField(max_length=2048)),
                ("resource", models.CharField(max_length=2048)),
                (
                    "tokens",
                    workspaces.secrets.EncryptedJSONField(blank=True, default=None, null=True),
                ),
                ("account", models.CharField(blank=True, max_length=254)),
                ("scope", models.CharField(blank=True, max_length=4000)),
                ("wanted_scope", models.CharField(blank=True, max_length=4000)),
                ("granted_at", models.DateTimeField()),
                ("refreshed_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("looked_at", models.DateTimeField(null=True)),
                ("generation", models.PositiveIntegerField(default=1)),
                ("refreshing_until", models.DateTimeField(null=True)),
                ("lost_reason", models.CharField(blank=True, max_length=300)),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.oauthclient",
                    ),
                ),
                (
                    "granted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to="mcp_servers.mcpserver",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
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
                "verbose_name": "connected account",
                "ordering": ["-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["expires_at"], name="oauth_grant_expiry")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("user__isnull", False)),
                        fields=("server", "user"),
                        name="oauth_grant_of_person",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("user__isnull", True)),
                        fields=("server",),
                        name="oauth_grant_of_workspace",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ToolPermission",
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
                ("definition_hash", models.CharField(editable=False, max_length=64)),
                ("conversation_id", models.UUIDField(editable=False, null=True)),
                ("action", models.CharField(blank=True, editable=False, max_length=64)),
                ("action_label", models.CharField(blank=True, editable=False, max_length=300)),
                (
                    "tool",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="permissions",
                        to="mcp_servers.mcptool",
                    ),
                ),
                (
                    "user",
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
                "verbose_name": "tool permission",
                "ordering": ["-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "tool", "conversation_id", "action"),
                        name="tool_permission_here_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("conversation_id__isnull", True)),
                        fields=("user", "tool", "action"),
                        name="tool_permission_everywhere_once",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ToolSighting",
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
                ("definition_hash", models.CharField(max_length=64)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.mcpserver",
                    ),
                ),
                (
                    "tool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sightings",
                        to="mcp_servers.mcptool",
                    ),
                ),
                (
                    "user",
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
                "verbose_name": "tool sighting",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("user", "tool"), name="tool_sighting_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="TraceMessage",
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
                ("at", models.DateTimeField(editable=False)),
                ("principal", models.CharField(editable=False, max_length=60)),
                ("connection", models.CharField(editable=False, max_length=20)),
                ("direction", models.CharField(editable=False, max_length=10)),
                ("kind", models.CharField(editable=False, max_length=15)),
                ("method", models.CharField(blank=True, editable=False, max_length=100)),
                ("rpc_id", models.CharField(blank=True, editable=False, max_length=100)),
                ("call_id", models.UUIDField(editable=False, null=True)),
                ("user_id", models.UUIDField(editable=False, null=True)),
                ("outline", models.JSONField(editable=False, null=True)),
                (
                    "body",
                    workspaces.secrets.EncryptedTextField(
                        blank=True, default=None, editable=False, null=True
                    ),
                ),
                ("text", models.TextField(blank=True, editable=False)),
                ("size", models.PositiveIntegerField(default=0, editable=False)),
                ("duration_ms", models.PositiveIntegerField(editable=False, null=True)),
                (
                    "server",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trace",
                        to="mcp_servers.mcpserver",
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
                "verbose_name": "trace message",
                "ordering": ["-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["server", "-id"], name="trace_by_server"),
                    models.Index(fields=["at"], name="trace_by_age"),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Approval",
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
                ("call_id", models.UUIDField(editable=False)),
                ("server_id", models.UUIDField(editable=False)),
                ("tool_id", models.UUIDField(editable=False)),
                ("definition_hash", models.CharField(editable=False, max_length=64)),
                ("arguments_hash", models.CharField(editable=False, max_length=64)),
                ("principal", models.CharField(editable=False, max_length=60)),
                ("requester_id", models.UUIDField(editable=False, null=True)),
                ("approver_id", models.UUIDField(editable=False, null=True)),
                ("approver_label", models.CharField(editable=False, max_length=254)),
                ("expires_at", models.DateTimeField(editable=False)),
                ("consumed_at", models.DateTimeField(editable=False, null=True)),
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
                "verbose_name": "approval",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "call_id"), name="approval_one_per_call"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="CallCount",
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
                ("server_id", models.UUIDField()),
                ("day", models.DateField()),
                ("used", models.PositiveIntegerField(default=0)),
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
                        fields=("workspace", "server_id", "day"), name="call_count_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="CatalogueChoice",
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
                ("source", models.CharField(max_length=20)),
                ("slug", models.CharField(max_length=100)),
                (
                    "is_for_everybody",
                    models.BooleanField(default=False, verbose_name="members may install it"),
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
                "verbose_name": "catalogue choice",
                "ordering": ["source", "slug"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "source", "slug"), name="catalogue_choice_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="InputRequest",
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
                ("call_id", models.UUIDField(editable=False)),
                ("conversation_id", models.UUIDField(editable=False, null=True)),
                ("turn_id", models.UUIDField(editable=False, null=True)),
                ("server_id", models.UUIDField(editable=False)),
                ("server_name", models.CharField(editable=False, max_length=60)),
                ("tool_name", models.CharField(editable=False, max_length=256)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("form", "form"),
                            ("url", "url"),
                            ("sampling", "sampling"),
                            ("roots", "roots"),
                            ("sign_in", "sign_in"),
                        ],
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("key", models.CharField(editable=False, max_length=200)),
                ("fingerprint", models.CharField(editable=False, max_length=64)),
                ("message", models.TextField(blank=True, editable=False)),
                ("schema", models.JSONField(default=dict, editable=False)),
                ("url", models.TextField(blank=True, editable=False)),
                ("elicitation_id", models.CharField(blank=True, editable=False, max_length=200)),
                ("params", models.JSONField(default=dict, editable=False)),
                ("warnings", models.JSONField(default=list, editable=False)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Waiting"),
                            ("accepted", "Answered"),
                            ("declined", "Declined"),
                            ("cancelled", "Cancelled"),
                            ("expired", "Ran out"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                (
                    "answer",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                ("tokens_used", models.PositiveIntegerField(default=0)),
                ("expires_at", models.DateTimeField(editable=False)),
                ("answered_at", models.DateTimeField(null=True)),
                (
                    "asked_of",
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
                "verbose_name": "input request",
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(
                        fields=["workspace", "conversation_id"], name="input_of_conversation"
                    ),
                    models.Index(fields=["call_id"], name="input_of_call"),
                    models.Index(fields=["status", "expires_at"], name="input_running_out"),
                    models.Index(fields=["server_id", "created_at"], name="input_of_server"),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="McpResource",
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
                ("uri", models.CharField(editable=False, max_length=2048, verbose_name="URI")),
                ("is_template", models.BooleanField(default=False, editable=False)),
                ("name", models.CharField(blank=True, editable=False, max_length=256)),
                ("title", models.CharField(blank=True, editable=False, max_length=256)),
                ("description", models.TextField(blank=True, editable=False)),
                ("mime_type", models.CharField(blank=True, editable=False, max_length=200)),
                ("size", models.PositiveBigIntegerField(editable=False, null=True)),
                ("annotations", models.JSONField(default=dict, editable=False)),
                ("icons", models.JSONField(default=list, editable=False)),
                ("is_enabled", models.BooleanField(default=True, verbose_name="switched on")),
                ("is_watched", models.BooleanField(default=False, editable=False)),
                ("changed_at", models.DateTimeField(editable=False, null=True)),
                ("first_seen_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField(editable=False)),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
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
                    "server",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="resources",
                        to="mcp_servers.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "resource",
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("server", "is_template", "uri"), name="mcp_resource_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="McpPrompt",
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
                ("name", models.CharField(editable=False, max_length=256)),
                ("title", models.CharField(blank=True, editable=False, max_length=256)),
                ("description", models.TextField(blank=True, editable=False)),
                ("arguments", models.JSONField(default=list, editable=False)),
                ("icons", models.JSONField(default=list, editable=False)),
                ("is_enabled", models.BooleanField(default=True, verbose_name="switched on")),
                ("first_seen_at", models.DateTimeField(auto_now_add=True)),
                ("last_seen_at", models.DateTimeField(editable=False)),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
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
                    "server",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="prompts",
                        to="mcp_servers.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "prompt",
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("server", "name"), name="mcp_prompt_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="HealthCheck",
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
                ("checked_at", models.DateTimeField(editable=False)),
                ("is_ok", models.BooleanField(editable=False)),
                ("latency_ms", models.PositiveIntegerField(editable=False, null=True)),
                ("error", models.TextField(blank=True, editable=False)),
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
                    "server",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="health_checks",
                        to="mcp_servers.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "health check",
                "ordering": ["-checked_at"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["server", "-checked_at"], name="health_check_by_server"),
                    models.Index(fields=["checked_at"], name="health_check_by_age"),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ActionRule",
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
                ("key", models.CharField(editable=False, max_length=64)),
                ("service", models.CharField(blank=True, max_length=200)),
                ("category", models.CharField(blank=True, max_length=200)),
                ("action", models.CharField(max_length=200)),
                (
                    "effect",
                    models.CharField(
                        choices=[("auto", "auto"), ("confirm", "confirm"), ("deny", "deny")],
                        max_length=10,
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
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="action_rules",
                        to="mcp_servers.mcpserver",
                    ),
                ),
            ],
            options={
                "verbose_name": "rule on an action",
                "verbose_name_plural": "rules on actions",
                "ordering": ["service", "category", "action", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(fields=("server", "key"), name="action_rule_once")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "tenant_references"),
    ]
    operations = [TablesUnlessThere(operations)]
