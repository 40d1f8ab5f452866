"""What checks write about a server gets a row of its own."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent / "sql"
MOVED = (
    *("status", "status_reason", "last_connected_at", "last_checked_at", "next_check_at"),
    *("consecutive_failures", "latency_ms", "server_info", "protocol_revision"),
    *("resolved_transport", "capabilities", "instructions", "tools_listed_at", "lists_stale_at"),
)
COLUMNS = ", ".join(MOVED)
COPY = f"""
INSERT INTO mcp_servers_serverstate (server_id, workspace_id, created_at, updated_at, {COLUMNS})
SELECT id, workspace_id, created_at, updated_at, {COLUMNS} FROM mcp_servers_mcpserver
"""  # noqa: S608  names of columns
COPY_BACK = f"""
UPDATE mcp_servers_mcpserver SET ({COLUMNS}) = (
    SELECT {COLUMNS} FROM mcp_servers_serverstate WHERE server_id = mcp_servers_mcpserver.id
)
"""  # noqa: S608


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0005_use_servers_everywhere"),
        ("workspaces", "0003_account_addresses"),
    ]

    operations = [
        migrations.CreateModel(
            name="ServerState",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "server",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
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
            ],
            options={
                "verbose_name": "state of an MCP server",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.RunSQL(COPY, COPY_BACK),
        migrations.RemoveIndex(model_name="mcpserver", name="mcp_server_due_for_check"),
        *(migrations.RemoveField("mcpserver", name) for name in MOVED),
        migrations.AddIndex(
            model_name="serverstate",
            index=models.Index(fields=["next_check_at"], name="mcp_server_due_for_check"),
        ),
        # After the rows are there: PostgreSQL alters no table whose rows have checks to come.
        run_sql_file(SQL, "server_state_tenant"),
    ]
