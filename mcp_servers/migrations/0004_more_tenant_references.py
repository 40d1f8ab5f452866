"""Resources, prompts, traces and permissions of one workspace cannot hang on another's rows, on PostgreSQL."""

from typing import Any

from django.db import migrations

SERVER = "mcp_servers_mcpserver"
TOOL = "mcp_servers_mcptool"
REFERENCES = [
    ("mcp_servers_mcpresource", "server_id", SERVER),
    ("mcp_servers_mcpprompt", "server_id", SERVER),
    ("mcp_servers_tracemessage", "server_id", SERVER),
    ("mcp_servers_toolpermission", "tool_id", TOOL),
]


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        f"ALTER TABLE {TOOL} ADD CONSTRAINT {TOOL}_tenant UNIQUE (workspace_id, id)"
    )
    for table, column, target in REFERENCES:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_tenant"
            f" FOREIGN KEY (workspace_id, {column}) REFERENCES {target} (workspace_id, id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )


def backwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table, column, _ in REFERENCES:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_tenant")
    schema_editor.execute(f"ALTER TABLE {TOOL} DROP CONSTRAINT {TOOL}_tenant")


class Migration(migrations.Migration):
    dependencies = [("mcp_servers", "0003_scopes_resources_inputs_trace")]
    operations = [migrations.RunPython(forwards, backwards)]
