"""Indexes that the log is searched and sorted by, made while entries are written; words in previews on PostgreSQL."""

from typing import Any

from django.db import migrations, models

WORDS = """
    CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_by_words ON audit_auditentry
    USING gin (to_tsvector('simple', arguments_preview || ' ' || result_preview))
"""


class AddIndexBeside(migrations.AddIndex):
    """On PostgreSQL without a lock: the log must be written meanwhile. One that broke off is made anew."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            model = to_state.apps.get_model(app_label, self.model_name)
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
            schema_editor.add_index(model, self.index, concurrently=True)
        else:
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class RemoveIndexBeside(migrations.RemoveIndex):
    """The same for one that is no longer needed."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.name}"')
        else:
            super().database_forwards(app_label, schema_editor, from_state, to_state)


def add_words(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS audit_by_words")
        schema_editor.execute(WORDS)
        # Without statistics of its words the index would not be chosen.
        schema_editor.execute("ANALYZE audit_auditentry")


def drop_words(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS audit_by_words")


class Migration(migrations.Migration):
    atomic = False  # indexes that are made beside the writing cannot be part of a transaction
    dependencies = [("audit", "0008_streams_and_alerts")]
    operations = [
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_action",
        ),
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_server",
        ),
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_tool",
        ),
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_actor",
        ),
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_outcome",
        ),
        RemoveIndexBeside(
            model_name="auditentry",
            name="audit_by_moment",
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(fields=["workspace_id", "created_at", "id"], name="audit_at_moment"),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "action", "created_at", "id"], name="audit_at_kind"
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "server_name", "created_at", "id"],
                name="audit_at_server_name",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "tool_name", "created_at", "id"], name="audit_at_tool_name"
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "actor_id", "created_at", "id"], name="audit_at_person"
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "outcome", "created_at", "id"], name="audit_at_result"
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                fields=["workspace_id", "source", "created_at", "id"], name="audit_at_source"
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("bud_name", ""), _negated=True),
                fields=["workspace_id", "bud_name", "created_at", "id"],
                name="audit_at_bud",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("model", ""), _negated=True),
                fields=["workspace_id", "model", "created_at", "id"],
                name="audit_at_model",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("refused_by", ""), _negated=True),
                fields=["workspace_id", "refused_by", "created_at", "id"],
                name="audit_at_layer",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("request_id", ""), _negated=True),
                fields=["workspace_id", "request_id", "created_at", "id"],
                name="audit_at_request",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("trace_id", ""), _negated=True),
                fields=["workspace_id", "trace_id", "created_at", "id"],
                name="audit_at_trace",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("conversation_id__isnull", False)),
                fields=["workspace_id", "conversation_id", "created_at", "id"],
                name="audit_at_conversation",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("turn_id__isnull", False)),
                fields=["workspace_id", "turn_id", "created_at", "id"],
                name="audit_at_turn",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("ip_address__isnull", False)),
                fields=["workspace_id", "ip_address", "created_at", "id"],
                name="audit_at_address",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("duration_ms__isnull", False)),
                fields=["workspace_id", "duration_ms", "created_at", "id"],
                name="audit_at_duration",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("arguments_size__isnull", False)),
                fields=["workspace_id", "arguments_size", "created_at", "id"],
                name="audit_at_sent",
            ),
        ),
        AddIndexBeside(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("result_size__isnull", False)),
                fields=["workspace_id", "result_size", "created_at", "id"],
                name="audit_at_received",
            ),
        ),
        migrations.RunPython(add_words, drop_words),
    ]
