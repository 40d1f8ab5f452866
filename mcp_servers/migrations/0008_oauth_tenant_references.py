"""Clients, grants, sign-ins and sightings of one workspace cannot hang on another's rows, on PostgreSQL."""

from typing import Any

from django.db import migrations

SERVER = "mcp_servers_mcpserver"
TOOL = "mcp_servers_mcptool"
CLIENT = "mcp_servers_oauthclient"
REFERENCES = [
    (CLIENT, "server_id", SERVER),
    ("mcp_servers_oauthgrant", "server_id", SERVER),
    ("mcp_servers_oauthgrant", "client_id", CLIENT),
    ("mcp_servers_oauthattempt", "server_id", SERVER),
    ("mcp_servers_oauthattempt", "client_id", CLIENT),
    ("mcp_servers_toolsighting", "server_id", SERVER),
    ("mcp_servers_toolsighting", "tool_id", TOOL),
]


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        f"ALTER TABLE {CLIENT} ADD CONSTRAINT {CLIENT}_tenant UNIQUE (workspace_id, id)"
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
    schema_editor.execute(f"ALTER TABLE {CLIENT} DROP CONSTRAINT {CLIENT}_tenant")


class Migration(migrations.Migration):
    dependencies = [("mcp_servers", "0007_oauth")]
    operations = [migrations.RunPython(forwards, backwards)]
