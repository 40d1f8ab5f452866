"""A tool or a health check of one workspace cannot hang on a server of another, on PostgreSQL."""

from typing import Any

from django.db import migrations

PARENT = "mcp_servers_mcpserver"
TABLES = ["mcp_servers_mcptool", "mcp_servers_healthcheck"]


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        f"ALTER TABLE {PARENT} ADD CONSTRAINT {PARENT}_tenant UNIQUE (workspace_id, id)"
    )
    for table in TABLES:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_server_tenant"
            f" FOREIGN KEY (workspace_id, server_id) REFERENCES {PARENT} (workspace_id, id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )


def backwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in TABLES:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_server_tenant")
    schema_editor.execute(f"ALTER TABLE {PARENT} DROP CONSTRAINT {PARENT}_tenant")


class Migration(migrations.Migration):
    dependencies = [("mcp_servers", "0001_servers_tools_and_approvals")]
    operations = [migrations.RunPython(forwards, backwards)]
