"""Hosted instances and rules on actions of one workspace cannot hang on another's servers, on PostgreSQL."""

from typing import Any

from django.db import migrations

SERVER = "mcp_servers_mcpserver"
TABLES = ["mcp_servers_klavisinstance", "mcp_servers_actionrule"]


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in TABLES:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_server_id_tenant"
            f" FOREIGN KEY (workspace_id, server_id) REFERENCES {SERVER} (workspace_id, id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )


def backwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in TABLES:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_server_id_tenant")


class Migration(migrations.Migration):
    dependencies = [("mcp_servers", "0010_klavis")]
    operations = [migrations.RunPython(forwards, backwards)]
