"""Each entry has a keyed mark; like what is sealed, it is never changed."""

from typing import Any

from django.db import migrations, models

ENTRY = "audit_auditentry"
ERASABLE = ("arguments_preview", "result_preview")


def guard(apps: Any, schema_editor: Any) -> None:
    """SQLite's trigger names the columns that it watches; PostgreSQL's watches all."""
    connection = schema_editor.connection
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, ENTRY)
    sealed = ", ".join(f'"{column.name}"' for column in columns if column.name not in ERASABLE)
    schema_editor.execute("DROP TRIGGER audit_no_update")
    schema_editor.execute(
        f"CREATE TRIGGER audit_no_update BEFORE UPDATE OF {sealed} ON {ENTRY} "
        "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
    )


class Migration(migrations.Migration):
    dependencies = [("audit", "0011_holds_stay")]
    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="mark",
            field=models.CharField(
                help_text="Keyed, over what is sealed: that Trellis wrote the entry.",
                max_length=64,
                null=True,
            ),
        ),
        migrations.RunPython(guard, migrations.RunPython.noop),
    ]
