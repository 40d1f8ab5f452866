"""Entries are only ever added: triggers refuse to change, delete or truncate them."""

from typing import Any

from django.db import migrations

TABLE = "audit_auditentry"

UP: dict[str, list[str]] = {
    "postgresql": [
        """
        CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'audit entries are append-only' USING ERRCODE = 'restrict_violation';
        END $$
        """,
        f"""
        CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {TABLE}
        FOR EACH ROW EXECUTE FUNCTION audit_refuse()
        """,
        f"""
        CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON {TABLE}
        FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
        """,
    ],
    "sqlite": [
        f"""
        CREATE TRIGGER audit_no_update BEFORE UPDATE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END
        """,
        f"""
        CREATE TRIGGER audit_no_delete BEFORE DELETE ON {TABLE}
        BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END
        """,
    ],
}
DOWN: dict[str, list[str]] = {
    "postgresql": [
        f"DROP TRIGGER audit_no_change ON {TABLE}",
        f"DROP TRIGGER audit_no_truncate ON {TABLE}",
        "DROP FUNCTION audit_refuse()",
    ],
    "sqlite": ["DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete"],
}


def forwards(apps: Any, schema_editor: Any) -> None:
    for statement in UP[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def backwards(apps: Any, schema_editor: Any) -> None:
    for statement in DOWN[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_audit_entries")]
    operations = [migrations.RunPython(forwards, backwards)]
