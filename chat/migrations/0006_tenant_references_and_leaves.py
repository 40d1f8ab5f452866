"""The new rows keep to their workspace, on PostgreSQL; each conversation's path ends with its last message."""

from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery

PARENTS = ["chat_artifact", "chat_toolcall", "chat_webhookendpoint"]
REFERENCES = [
    ("chat_providermodel", "provider_id", "chat_modelprovider"),
    ("chat_queuedmessage", "conversation_id", "chat_conversation"),
    ("chat_conversation", "leaf_id", "chat_message"),
    ("chat_toolcall", "repeats_id", "chat_toolcall"),
    ("chat_artifact", "conversation_id", "chat_conversation"),
    ("chat_artifactversion", "artifact_id", "chat_artifact"),
    ("chat_artifactversion", "message_id", "chat_message"),
    ("chat_artifactversion", "tool_call_id", "chat_toolcall"),
    ("chat_webhookdelivery", "endpoint_id", "chat_webhookendpoint"),
]


def keep_to_workspaces(apps: Any, schema_editor: Any) -> None:
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


def let_go(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    for table, column, _ in REFERENCES:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_tenant")
    for table in PARENTS:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_tenant")


def end_paths(apps: Any, schema_editor: Any) -> None:
    """What was one line until now ends with its last message; titles came from the first one or from a person."""
    messages = apps.get_model("chat", "Message")._base_manager
    conversations = apps.get_model("chat", "Conversation")._base_manager
    last = messages.filter(conversation=OuterRef("pk")).order_by("-order_key", "-id")
    conversations.filter(leaf=None).update(leaf=Subquery(last.values("pk")[:1]))
    conversations.exclude(title="").filter(title_source="").update(title_source="person")


class Migration(migrations.Migration):
    # Rows are changed first and constraints added after, each in its own transaction: PostgreSQL refuses to
    # alter a table with changes that still wait for their deferred checks.
    atomic = False
    dependencies = [("chat", "0005_branches_queue_artifacts_webhooks")]
    operations = [
        migrations.RunPython(end_paths, migrations.RunPython.noop, atomic=True),
        migrations.RunPython(keep_to_workspaces, let_go, atomic=True),
    ]
