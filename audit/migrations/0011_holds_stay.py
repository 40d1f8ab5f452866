"""A legal hold is never deleted, and changed only once: when it is released."""

from typing import Any

from django.db import migrations

REFUSED = "legal holds are only ever released"

POSTGRESQL = [
    f"""
    CREATE FUNCTION audit_guard_hold() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' AND OLD.released_at IS NULL AND NEW.released_at IS NOT NULL
            AND to_jsonb(NEW) - '{{released_at,released_by}}'::text[]
                = to_jsonb(OLD) - '{{released_at,released_by}}'::text[] THEN RETURN NEW;
        END IF;
        RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_legalhold
    FOR EACH ROW EXECUTE FUNCTION audit_guard_hold()
    """,
    """
    CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_legalhold
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
]
SQLITE = [
    f"""
    CREATE TRIGGER audit_hold_no_delete BEFORE DELETE ON audit_legalhold
    BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END
    """,
    f"""
    CREATE TRIGGER audit_hold_released BEFORE UPDATE ON audit_legalhold
    WHEN OLD.released_at IS NOT NULL OR NEW.released_at IS NULL OR NEW.id <> OLD.id
        OR NEW.workspace_id <> OLD.workspace_id OR NEW.reason <> OLD.reason
        OR NEW.placed_by <> OLD.placed_by OR NEW.placed_at <> OLD.placed_at
    BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END
    """,
]


def guard(apps: Any, schema_editor: Any) -> None:
    for statement in POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_writes_past_services")]
    operations = [migrations.RunPython(guard, migrations.RunPython.noop)]
