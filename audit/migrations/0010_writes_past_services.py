"""Writes of configuration past the services: where they are noted, and which were announced after all."""

from typing import Any

from django.db import migrations, models

POSTGRESQL = [
    """
    CREATE OR REPLACE FUNCTION audit_await_seal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO audit_pendingseal (entry_id, xact) VALUES (NEW.id, pg_current_xact_id()::text);
        IF NEW.action = 'config.changed' THEN
            DELETE FROM audit_outsidewrite
            WHERE row_id = NEW.details ->> 'id' AND xact = pg_current_xact_id()::text;
        END IF;
        RETURN NULL;
    END $$
    """,
]
SQLITE = [
    """
    CREATE TRIGGER audit_await_seal AFTER INSERT ON audit_auditentry
    BEGIN INSERT INTO audit_pendingseal (entry_id) VALUES (NEW.id); END
    """,
    """
    CREATE TRIGGER audit_announced AFTER INSERT ON audit_auditentry WHEN NEW.action = 'config.changed'
    BEGIN DELETE FROM audit_outsidewrite WHERE row_id = replace(json_extract(NEW.details, '$.id'), '-', ''); END
    """,
]


def let_go(apps: Any, schema_editor: Any) -> None:
    """SQLite builds the table anew, and refuses to while a trigger names it."""
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER IF EXISTS audit_await_seal")


def cast(apps: Any, schema_editor: Any) -> None:
    for statement in POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0009_search"),
    ]

    operations = [
        migrations.RunPython(let_go, migrations.RunPython.noop),
        migrations.AddField(
            model_name="pendingseal",
            name="xact",
            field=models.CharField(
                db_default="",
                default="",
                help_text="PostgreSQL's number of the transaction.",
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="OutsideWrite",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("table_name", models.CharField(max_length=63)),
                ("row_id", models.CharField(help_text="As the database writes it.", max_length=64)),
                ("verb", models.CharField(max_length=6)),
                (
                    "workspace_key",
                    models.CharField(
                        default="",
                        help_text="The row's workspace, as the database writes it.",
                        max_length=64,
                    ),
                ),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("xact", models.CharField(db_default="", default="", max_length=20)),
            ],
            options={
                "indexes": [models.Index(fields=["row_id"], name="audit_outside_row")],
            },
        ),
        migrations.RunPython(cast, migrations.RunPython.noop),
    ]
