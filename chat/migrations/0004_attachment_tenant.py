"""An attachment of one workspace cannot hang on a message of another, on PostgreSQL."""

from typing import Any

from django.db import migrations

NAME = "chat_attachment_message_id_tenant"


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        f"ALTER TABLE chat_attachment ADD CONSTRAINT {NAME}"
        " FOREIGN KEY (workspace_id, message_id) REFERENCES chat_message (workspace_id, id)"
        " DEFERRABLE INITIALLY DEFERRED"
    )


def backwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(f"ALTER TABLE chat_attachment DROP CONSTRAINT {NAME}")


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_inputs_and_attachments")]
    operations = [migrations.RunPython(forwards, backwards)]
