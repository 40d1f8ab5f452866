"""Seals, checkpoints, bodies apart; entries go only behind a tombstone, and each new one waits for its seal."""

from typing import Any

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

import audit.models.entries
import workspaces.secrets

ENTRY, SEAL = "audit_auditentry", "audit_auditseal"
CHECKPOINT, TOMBSTONE = "audit_auditcheckpoint", "audit_audittombstone"
PENDING = "audit_pendingseal"
ERASABLE = ("arguments_preview", "result_preview")
REFUSED = "the audit log is append-only"

# Whether a signed statement covers what is about to go. That the signature holds is the verifier's to say.
COVERED = f"""
    EXISTS (SELECT 1 FROM {SEAL} s JOIN {TOMBSTONE} t
        ON t.chain_id = s.chain_id AND s.seq BETWEEN t.first_seq AND t.last_seq
        WHERE s.entry_id = OLD.id AND t.kind = %s)
"""
SEAL_COVERED = f"""
    EXISTS (SELECT 1 FROM {TOMBSTONE} t WHERE t.chain_id = OLD.chain_id
        AND OLD.seq BETWEEN t.first_seq AND t.last_seq AND t.kind = 'entries')
"""

POSTGRESQL = [
    "DROP TRIGGER audit_no_change ON audit_auditentry",
    "DROP TRIGGER audit_no_truncate ON audit_auditentry",
    f"""
    CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    f"""
    CREATE FUNCTION audit_guard_entry() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF {COVERED.replace("%s", "'entries'")} THEN RETURN OLD; END IF;
        ELSIF NEW.arguments_preview = '' AND NEW.result_preview = ''
            AND to_jsonb(NEW) - '{{{",".join(ERASABLE)}}}'::text[] = to_jsonb(OLD) - '{{{",".join(ERASABLE)}}}'::text[]
            AND {COVERED.replace("%s", "'bodies'")} THEN RETURN NEW;
        END IF;
        RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    f"""
    CREATE FUNCTION audit_guard_seal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND {SEAL_COVERED} THEN RETURN OLD; END IF;
        RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    f"""
    CREATE FUNCTION audit_await_seal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO {PENDING} (entry_id) VALUES (NEW.id);
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON {ENTRY}
    FOR EACH ROW EXECUTE FUNCTION audit_guard_entry()
    """,
    f"""
    CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON {SEAL}
    FOR EACH ROW EXECUTE FUNCTION audit_guard_seal()
    """,
    f"""
    CREATE TRIGGER audit_await_seal AFTER INSERT ON {ENTRY}
    FOR EACH ROW EXECUTE FUNCTION audit_await_seal()
    """,
    *(
        f"CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION audit_refuse()"
        for table in (CHECKPOINT, TOMBSTONE)
    ),
    *(
        f"CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()"
        for table in (ENTRY, SEAL, CHECKPOINT, TOMBSTONE)
    ),
]


def sqlite(columns: list[str]) -> list[str]:
    """The same for SQLite, whose triggers name the columns they watch."""
    sealed = ", ".join(f'"{name}"' for name in columns if name not in ERASABLE)
    refuse = f"BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
    return [
        f"CREATE TRIGGER audit_no_update BEFORE UPDATE OF {sealed} ON {ENTRY} {refuse}",
        f"""
        CREATE TRIGGER audit_no_erasure BEFORE UPDATE OF {", ".join(ERASABLE)} ON {ENTRY}
        WHEN NEW.arguments_preview <> '' OR NEW.result_preview <> ''
            OR NOT {COVERED.replace("%s", "'bodies'")} {refuse}
        """,
        f"""
        CREATE TRIGGER audit_no_delete BEFORE DELETE ON {ENTRY}
        WHEN NOT {COVERED.replace("%s", "'entries'")} {refuse}
        """,
        f"CREATE TRIGGER audit_seal_no_update BEFORE UPDATE ON {SEAL} {refuse}",
        f"""
        CREATE TRIGGER audit_seal_no_delete BEFORE DELETE ON {SEAL}
        WHEN NOT {SEAL_COVERED} {refuse}
        """,
        f"""
        CREATE TRIGGER audit_await_seal AFTER INSERT ON {ENTRY}
        BEGIN INSERT INTO {PENDING} (entry_id) VALUES (NEW.id); END
        """,
        *(
            f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} {refuse}"
            for table in (CHECKPOINT, TOMBSTONE)
            for verb in ("update", "delete")
        ),
    ]


def let_go(apps: Any, schema_editor: Any) -> None:
    """SQLite builds the table anew for a new column, and its triggers would be lost on the way."""
    if schema_editor.connection.vendor == "sqlite":
        for name in ("audit_no_update", "audit_no_delete"):
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}")


def guard(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            table = connection.introspection.get_table_description(cursor, ENTRY)
        statements = sqlite([column.name for column in table])
    else:
        statements = POSTGRESQL
    for statement in statements:
        schema_editor.execute(statement)
    # What was written before there were seals gets its place now, in the order of its making.
    schema_editor.execute(f"INSERT INTO {PENDING} (entry_id) SELECT id FROM {ENTRY} ORDER BY id")


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0004_unknown_outcomes_and_restores"),
        ("workspaces", "0004_installation"),
    ]

    operations = [
        migrations.RunPython(let_go, migrations.RunPython.noop),
        migrations.CreateModel(
            name="AuditCheckpoint",
            fields=[
                (
                    "number",
                    models.BigIntegerField(
                        help_text="1, 2, 3 … without a gap.", primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("interval", "Interval"),
                            ("rotation", "Rotation"),
                            ("end", "End"),
                        ],
                        max_length=10,
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("statement", models.TextField(help_text="Exactly what is signed: RFC 8785 JSON.")),
                ("hash", models.CharField(help_text="SHA-256 of the statement.", max_length=64)),
                ("key_id", models.CharField(max_length=16)),
                ("signature", models.CharField(help_text="Ed25519, base64.", max_length=100)),
                (
                    "countersignature",
                    models.CharField(
                        blank=True, help_text="Of the new key, when keys change.", max_length=100
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AuditPolicy",
            fields=[
                (
                    "workspace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="audit_policy",
                        serialize=False,
                        to="workspaces.workspace",
                    ),
                ),
                (
                    "keep_days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: for ever.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "keep_entries",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: all.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1000)],
                    ),
                ),
                (
                    "keep_bodies_days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: as long as their entries.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "body_bytes",
                    models.PositiveIntegerField(
                        default=1048576,
                        help_text="Of arguments and of a result, at most this much is kept. 0: nothing but the preview.",
                        validators=[django.core.validators.MaxValueValidator(67108864)],
                    ),
                ),
                (
                    "masked_paths",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="JSONPath (RFC 9535) into arguments and results.",
                    ),
                ),
                ("detectors", models.JSONField(blank=True, default=list)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "verbose_name": "audit settings",
                "verbose_name_plural": "audit settings",
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="PendingSeal",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("entry_id", models.UUIDField()),
            ],
        ),
        migrations.AddField(
            model_name="auditentry",
            name="body_commitment",
            field=models.CharField(
                blank=True,
                default="",
                db_default="",
                help_text="Keyed, over previews and stored body.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="credential_id",
            field=models.CharField(
                blank=True,
                default="",
                db_default="",
                help_text="Which stored credential was used.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="on_behalf_of",
            field=models.CharField(
                blank=True,
                default="",
                db_default="",
                help_text="Whom a part of the system acted for.",
                max_length=254,
            ),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="redactions",
            field=models.JSONField(help_text="What was masked, and by which rule.", null=True),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="sign_in",
            field=models.CharField(
                blank=True,
                default="",
                db_default="",
                help_text="How the actor signed in.",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="created_at",
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(choices=audit.models.entries.action_choices, max_length=40),
        ),
        migrations.CreateModel(
            name="AuditBody",
            fields=[
                ("entry_id", models.UUIDField(primary_key=True, serialize=False)),
                ("workspace_id", models.UUIDField(null=True)),
                (
                    "key",
                    workspaces.secrets.EncryptedTextField(
                        blank=True,
                        default=None,
                        null=True,
                        help_text="The body's own key, base64 of 32 bytes.",
                    ),
                ),
                ("arguments", models.BinaryField(null=True)),
                ("result", models.BinaryField(null=True)),
                (
                    "is_cut",
                    models.BooleanField(
                        default=False, help_text="More than the limit: the beginning is kept."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "verbose_name": "audit body",
                "verbose_name_plural": "audit bodies",
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace_id", "created_at"], name="audit_body_by_age")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("entry_id", models.UUIDField(primary_key=True, serialize=False)),
                ("chain_id", models.UUIDField()),
                (
                    "seq",
                    models.BigIntegerField(help_text="1, 2, 3 … in each chain, without a gap."),
                ),
                (
                    "hash",
                    models.CharField(
                        help_text="SHA-256 over the entry, its place and the hash before it.",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("chain_id", "seq"), name="audit_seal_place")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditTombstone",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("chain_id", models.UUIDField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("entries", "entries and their bodies"),
                            ("bodies", "bodies and previews"),
                        ],
                        max_length=10,
                    ),
                ),
                ("first_seq", models.BigIntegerField()),
                ("last_seq", models.BigIntegerField()),
                ("reason", models.CharField(max_length=200)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("statement", models.TextField(help_text="Exactly what is signed: RFC 8785 JSON.")),
                ("key_id", models.CharField(max_length=16)),
                ("signature", models.CharField(help_text="Ed25519, base64.", max_length=100)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["chain_id", "first_seq", "last_seq"], name="audit_tombstone_range"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LegalHold",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("workspace_id", models.UUIDField()),
                ("reason", models.CharField(max_length=500)),
                ("placed_by", models.CharField(max_length=254)),
                ("placed_at", models.DateTimeField(auto_now_add=True)),
                ("released_by", models.CharField(blank=True, max_length=254)),
                ("released_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-placed_at"],
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace_id", "-placed_at"], name="audit_hold_by_time")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.RunPython(guard, migrations.RunPython.noop),
    ]
