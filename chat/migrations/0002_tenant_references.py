"""A row of one workspace cannot point at a row of another: composite foreign keys, on PostgreSQL.

SQLite, for one machine and one process, has the tenant door alone.
"""

from typing import Any

from django.db import migrations

PARENTS = [
    "chat_modelprovider",
    "chat_bud",
    "chat_conversation",
    "chat_message",
    "chat_turn",
]
REFERENCES = [
    ("chat_bud", "provider_id", "chat_modelprovider"),
    ("chat_conversation", "bud_id", "chat_bud"),
    ("chat_message", "conversation_id", "chat_conversation"),
    ("chat_message", "turn_id", "chat_turn"),
    ("chat_message", "parent_id", "chat_message"),
    ("chat_turn", "conversation_id", "chat_conversation"),
    ("chat_turn", "user_message_id", "chat_message"),
    ("chat_toolcall", "turn_id", "chat_turn"),
    ("chat_toolcall", "message_id", "chat_message"),
]


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in PARENTS:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_tenant UNIQUE (workspace_id, id)"
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
    for table in PARENTS:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_tenant")


class Migration(migrations.Migration):
    dependencies = [("chat", "0001_buds_conversations_turns")]
    operations = [migrations.RunPython(forwards, backwards)]
