"""The log: entries, bodies, seals, checkpoints; rollups, reviews, streams, alerts; and the triggers that guard it."""

from pathlib import Path

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import workspaces.secrets
from audit.append_only import create_triggers
from workspaces.database.migration_operations import OnDatabase, TablesAtOnce
from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent.parent / "sql"


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("audit", "0001_audit_entries"),
        ("audit", "0002_append_only"),
        ("audit", "0003_more_actions"),
        ("audit", "0004_unknown_outcomes_and_restores"),
        ("audit", "0005_sealed_log"),
        ("audit", "0006_heads_of_chains"),
        ("audit", "0007_rollups_and_reviews"),
        ("audit", "0008_streams_and_alerts"),
        ("audit", "0009_search"),
        ("audit", "0010_writes_past_services"),
        ("audit", "0011_holds_stay"),
    ]

    dependencies = [
        ("workspaces", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                            ("restored", "Restored"),
                        ],
                        max_length=10,
                    ),
                ),
                ("made_at", models.DateTimeField()),
                ("statement", models.TextField(help_text="Exactly what is signed: RFC 8785 JSON.")),
                (
                    "heads",
                    models.TextField(
                        help_text="Where the chains stood that the statement names only by digest, as JSON.",
                        null=True,
                    ),
                ),
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
            name="AuditHead",
            fields=[
                ("chain_id", models.UUIDField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                (
                    "stated_seq",
                    models.BigIntegerField(default=0, help_text="What the newest checkpoint says."),
                ),
                (
                    "verified_seq",
                    models.BigIntegerField(
                        default=0, help_text="Up to where it was last verified."
                    ),
                ),
                ("verified_hash", models.CharField(blank=True, max_length=64)),
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
            name="AuditStream",
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
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("webhook", "Signed webhook"),
                            ("syslog", "Syslog over TLS"),
                            ("otlp", "OpenTelemetry (OTLP)"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "target",
                    models.CharField(help_text="A URL; for syslog host:port.", max_length=2048),
                ),
                (
                    "secret",
                    workspaces.secrets.EncryptedTextField(
                        blank=True, default=None, null=True, verbose_name="signing secret"
                    ),
                ),
                (
                    "headers",
                    workspaces.secrets.EncryptedJSONField(blank=True, default=None, null=True),
                ),
                (
                    "ca_certificates",
                    models.TextField(blank=True, help_text="PEM; empty: the system's."),
                ),
                ("client_certificate", models.TextField(blank=True, help_text="PEM.")),
                (
                    "client_key",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                ("is_paused", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit stream",
                "ordering": ["id"],
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
                (
                    "xact",
                    models.CharField(
                        db_default="",
                        default="",
                        help_text="PostgreSQL's number of the transaction.",
                        max_length=20,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RollupCursor",
            fields=[
                ("chain_id", models.UUIDField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField(default=0)),
                ("moved_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name="AlertRule",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "condition",
                    models.CharField(
                        choices=[
                            ("connection", "Connection failures"),
                            ("timeout", "Timeouts"),
                            ("error_rate", "Error rate"),
                            ("refusal", "Refused calls"),
                            ("quota", "Calls over a quota"),
                            ("tampering", "Findings in the log itself"),
                            ("approval", "Approvals waiting"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "threshold",
                    models.PositiveIntegerField(
                        help_text="From how many on; for an error rate, from how many per cent.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                    ),
                ),
                (
                    "window_minutes",
                    models.PositiveIntegerField(
                        default=15,
                        help_text="Of how many minutes. Approvals count once they have waited this long.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1440),
                        ],
                    ),
                ),
                (
                    "least_calls",
                    models.PositiveIntegerField(
                        default=10, help_text="Of fewer calls no error rate is made."
                    ),
                ),
                (
                    "server_name",
                    models.CharField(blank=True, max_length=200, verbose_name="server"),
                ),
                ("tool_name", models.CharField(blank=True, max_length=256, verbose_name="tool")),
                ("is_active", models.BooleanField(default=True)),
                (
                    "remind_hours",
                    models.PositiveIntegerField(
                        default=24,
                        help_text="0: never.",
                        validators=[django.core.validators.MaxValueValidator(720)],
                    ),
                ),
                ("tells_bell", models.BooleanField(default=True, verbose_name="in-app bell")),
                ("emails", models.JSONField(blank=True, default=list, verbose_name="e-mail to")),
                (
                    "webhook_url",
                    models.CharField(blank=True, max_length=2048, verbose_name="webhook"),
                ),
                (
                    "webhook_secret",
                    workspaces.secrets.EncryptedTextField(blank=True, default=None, null=True),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert rule",
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
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
                        help_text="The body's own key, base64 of 32 bytes.",
                        null=True,
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
            name="AuditEntry",
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
                ("workspace_id", models.UUIDField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "action",
                    models.CharField(choices=audit.models.entries.action_choices, max_length=40),
                ),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("user", "user"),
                            ("system", "system"),
                            ("anonymous", "anonymous"),
                        ],
                        max_length=10,
                    ),
                ),
                ("actor_id", models.UUIDField(null=True)),
                ("actor_label", models.CharField(max_length=254)),
                ("actor_role", models.CharField(blank=True, max_length=20)),
                (
                    "on_behalf_of",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Whom a part of the system acted for.",
                        max_length=254,
                    ),
                ),
                (
                    "sign_in",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="How the actor signed in.",
                        max_length=20,
                    ),
                ),
                ("token_id", models.UUIDField(null=True)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("chat", "chat"),
                            ("web", "web"),
                            ("api", "api"),
                            ("admin", "admin"),
                            ("gateway", "gateway"),
                            ("task", "task"),
                            ("command", "command"),
                        ],
                        max_length=10,
                    ),
                ),
                ("ip_address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("trace_id", models.CharField(blank=True, max_length=64)),
                (
                    "call_id",
                    models.UUIDField(
                        help_text="Ties what was requested to how it finished.", null=True
                    ),
                ),
                ("bud_id", models.UUIDField(null=True)),
                ("bud_name", models.CharField(blank=True, max_length=200)),
                ("conversation_id", models.UUIDField(null=True)),
                ("turn_id", models.UUIDField(null=True)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("server_id", models.UUIDField(null=True)),
                ("server_name", models.CharField(blank=True, max_length=200)),
                ("transport", models.CharField(blank=True, max_length=20)),
                ("protocol_revision", models.CharField(blank=True, max_length=20)),
                (
                    "credential_id",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Which stored credential was used.",
                        max_length=64,
                    ),
                ),
                ("tool_id", models.UUIDField(null=True)),
                ("tool_name", models.CharField(blank=True, max_length=256)),
                ("definition_hash", models.CharField(blank=True, max_length=64)),
                ("annotations", models.JSONField(null=True)),
                ("arguments_preview", models.TextField(blank=True)),
                ("arguments_size", models.PositiveBigIntegerField(help_text="Bytes.", null=True)),
                ("arguments_commitment", models.CharField(blank=True, max_length=64)),
                ("result_preview", models.TextField(blank=True)),
                ("result_size", models.PositiveBigIntegerField(help_text="Bytes.", null=True)),
                ("result_commitment", models.CharField(blank=True, max_length=64)),
                (
                    "body_commitment",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Keyed, over previews and stored body.",
                        max_length=64,
                    ),
                ),
                (
                    "redactions",
                    models.JSONField(help_text="What was masked, and by which rule.", null=True),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("ok", "ok"),
                            ("tool_error", "tool_error"),
                            ("transport_error", "transport_error"),
                            ("timeout", "timeout"),
                            ("cancelled", "cancelled"),
                            ("outcome_unknown", "outcome_unknown"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "refused_by",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("not_found", "not_found"),
                            ("disabled", "disabled"),
                            ("quarantine", "quarantine"),
                            ("policy", "policy"),
                            ("approval", "approval"),
                            ("arguments", "arguments"),
                            ("quota", "quota"),
                            ("breaker", "breaker"),
                            ("busy", "busy"),
                            ("permission", "permission"),
                            ("audit", "audit"),
                        ],
                        max_length=20,
                    ),
                ),
                ("rule", models.CharField(blank=True, max_length=100)),
                ("duration_ms", models.PositiveIntegerField(null=True)),
                ("queue_ms", models.PositiveIntegerField(null=True)),
                ("approval", models.JSONField(null=True)),
                ("details", models.JSONField(default=dict)),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "ordering": ["-id"],
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace_id", "-id"], name="audit_by_time"),
                    models.Index(fields=["call_id"], name="audit_by_call"),
                    models.Index(
                        fields=["workspace_id", "created_at", "id"], name="audit_at_moment"
                    ),
                    models.Index(
                        fields=["workspace_id", "action", "created_at", "id"], name="audit_at_kind"
                    ),
                    models.Index(
                        fields=["workspace_id", "server_name", "created_at", "id"],
                        name="audit_at_server_name",
                    ),
                    models.Index(
                        fields=["workspace_id", "tool_name", "created_at", "id"],
                        name="audit_at_tool_name",
                    ),
                    models.Index(
                        fields=["workspace_id", "actor_id", "created_at", "id"],
                        name="audit_at_person",
                    ),
                    models.Index(
                        fields=["workspace_id", "outcome", "created_at", "id"],
                        name="audit_at_result",
                    ),
                    models.Index(
                        fields=["workspace_id", "source", "created_at", "id"],
                        name="audit_at_source",
                    ),
                    models.Index(
                        condition=models.Q(("bud_name", ""), _negated=True),
                        fields=["workspace_id", "bud_name", "created_at", "id"],
                        name="audit_at_bud",
                    ),
                    models.Index(
                        condition=models.Q(("model", ""), _negated=True),
                        fields=["workspace_id", "model", "created_at", "id"],
                        name="audit_at_model",
                    ),
                    models.Index(
                        condition=models.Q(("refused_by", ""), _negated=True),
                        fields=["workspace_id", "refused_by", "created_at", "id"],
                        name="audit_at_layer",
                    ),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["workspace_id", "request_id", "created_at", "id"],
                        name="audit_at_request",
                    ),
                    models.Index(
                        condition=models.Q(("trace_id", ""), _negated=True),
                        fields=["workspace_id", "trace_id", "created_at", "id"],
                        name="audit_at_trace",
                    ),
                    models.Index(
                        condition=models.Q(("conversation_id__isnull", False)),
                        fields=["workspace_id", "conversation_id", "created_at", "id"],
                        name="audit_at_conversation",
                    ),
                    models.Index(
                        condition=models.Q(("turn_id__isnull", False)),
                        fields=["workspace_id", "turn_id", "created_at", "id"],
                        name="audit_at_turn",
                    ),
                    models.Index(
                        condition=models.Q(("ip_address__isnull", False)),
                        fields=["workspace_id", "ip_address", "created_at", "id"],
                        name="audit_at_address",
                    ),
                    models.Index(
                        condition=models.Q(("duration_ms__isnull", False)),
                        fields=["workspace_id", "duration_ms", "created_at", "id"],
                        name="audit_at_duration",
                    ),
                    models.Index(
                        condition=models.Q(("arguments_size__isnull", False)),
                        fields=["workspace_id", "arguments_size", "created_at", "id"],
                        name="audit_at_sent",
                    ),
                    models.Index(
                        condition=models.Q(("result_size__isnull", False)),
                        fields=["workspace_id", "result_size", "created_at", "id"],
                        name="audit_at_received",
                    ),
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="AuditHistogram",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("workspace_id", models.UUIDField()),
                (
                    "dimension",
                    models.CharField(
                        choices=[
                            ("all", "All"),
                            ("server", "Server"),
                            ("tool", "Tool"),
                            ("actor", "Actor"),
                            ("bud", "Bud"),
                            ("source", "Source"),
                            ("model", "Model"),
                            ("layer", "Layer"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "measure",
                    models.CharField(
                        choices=[("duration", "Duration"), ("wait", "Wait")], max_length=8
                    ),
                ),
                ("grain", models.CharField(choices=[("h", "hour"), ("d", "day")], max_length=1)),
                ("start", models.DateTimeField()),
                ("value", models.CharField(blank=True, max_length=256)),
                ("second", models.CharField(blank=True, max_length=254)),
                ("bucket", models.PositiveSmallIntegerField()),
                ("count", models.BigIntegerField()),
            ],
            options={
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "workspace_id",
                            "dimension",
                            "measure",
                            "grain",
                            "start",
                            "value",
                            "second",
                            "bucket",
                        ),
                        name="audit_histogram_once",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="AuditRollup",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "workspace_id",
                    models.UUIDField(help_text="Of a workspace, or the platform's chain."),
                ),
                (
                    "dimension",
                    models.CharField(
                        choices=[
                            ("all", "All"),
                            ("server", "Server"),
                            ("tool", "Tool"),
                            ("actor", "Actor"),
                            ("bud", "Bud"),
                            ("source", "Source"),
                            ("model", "Model"),
                            ("layer", "Layer"),
                        ],
                        max_length=8,
                    ),
                ),
                ("grain", models.CharField(choices=[("h", "hour"), ("d", "day")], max_length=1)),
                ("start", models.DateTimeField()),
                ("value", models.CharField(blank=True, max_length=256)),
                (
                    "second",
                    models.CharField(
                        blank=True,
                        help_text="A tool's server, an actor's name, a layer's rule.",
                        max_length=254,
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                ("outcome", models.CharField(blank=True, max_length=20)),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField(help_text="How many of them have a duration.")),
                ("duration_ms", models.BigIntegerField(help_text="The sum.")),
                (
                    "waited",
                    models.BigIntegerField(help_text="How many of them ended a wait for approval."),
                ),
                ("wait_ms", models.BigIntegerField(help_text="The sum.")),
            ],
            options={
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "workspace_id",
                            "dimension",
                            "grain",
                            "start",
                            "value",
                            "second",
                            "action",
                            "outcome",
                        ),
                        name="audit_rollup_once",
                    )
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
            name="StreamState",
            fields=[
                (
                    "stream",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="state",
                        serialize=False,
                        to="audit.auditstream",
                    ),
                ),
                ("claim", models.UUIDField(help_text="Of the process that sends now.", null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("failures", models.PositiveIntegerField(default=0, help_text="In a row.")),
                ("next_attempt_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=300)),
                ("last_sent_at", models.DateTimeField(null=True)),
                (
                    "sent",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Entries confirmed so far."
                    ),
                ),
                (
                    "refused",
                    models.PositiveBigIntegerField(
                        default=0,
                        help_text="Entries that the sink took the batch of, but not them.",
                    ),
                ),
            ],
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
        migrations.CreateModel(
            name="SignOff",
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
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("query", models.TextField(blank=True)),
                ("totals", models.JSONField(default=dict)),
                ("note", models.CharField(blank=True, max_length=1000)),
                ("signed_by_id", models.UUIDField(null=True)),
                ("signed_by", models.CharField(max_length=254)),
                ("signed_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry_id",
                    models.UUIDField(help_text="The entry that says the same in the sealed log."),
                ),
            ],
            options={
                "ordering": ["-id"],
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace_id", "-id"], name="audit_sign_off_by_time")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="AlertDelivery",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "channel",
                    models.CharField(
                        choices=[("email", "Email"), ("webhook", "Webhook")], max_length=10
                    ),
                ),
                ("target", models.CharField(max_length=2048)),
                ("payload", models.JSONField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("given_up", "Given Up"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("delivered_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=200)),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="audit.alertrule",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert delivery",
                "verbose_name_plural": "alert deliveries",
                "ordering": ["id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["status", "next_attempt_at"], name="alert_delivery_due")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("value", models.FloatField(help_text="When last looked at.")),
                ("peak", models.FloatField()),
                ("told_at", models.DateTimeField(help_text="When people were last told.")),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="audit.alertrule",
                    ),
                ),
            ],
            options={
                "ordering": ["-started_at"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace", "-started_at"], name="alert_by_time")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("rule",),
                        name="alert_open_once",
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Notice",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("kind", models.CharField(max_length=20)),
                ("title", models.CharField(max_length=200)),
                ("text", models.CharField(blank=True, max_length=500)),
                ("url", models.CharField(blank=True, help_text="A path of ours.", max_length=500)),
                ("read_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["workspace", "user", "read_at"], name="notice_unread")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ReportSchedule",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=80)),
                ("query", models.TextField(blank=True, help_text="Filters, as in the address.")),
                ("format", models.CharField(max_length=10)),
                (
                    "cadence",
                    models.CharField(
                        choices=[
                            ("daily", "every day"),
                            ("weekly", "every Monday"),
                            ("monthly", "on the first of the month"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "delivery",
                    models.CharField(
                        choices=[("mail", "by e-mail"), ("storage", "into the file store")],
                        max_length=8,
                    ),
                ),
                (
                    "recipients",
                    models.JSONField(blank=True, default=list, help_text="Ids of members."),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("next_run_at", models.DateTimeField()),
                ("claimed_until", models.DateTimeField(null=True)),
                ("last_run_at", models.DateTimeField(null=True)),
                ("last_ok", models.BooleanField(null=True)),
                ("last_result", models.CharField(blank=True, max_length=500)),
                (
                    "made_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [
                    models.Index(fields=["is_active", "next_run_at"], name="audit_schedule_due")
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
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
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                ("name", models.CharField(max_length=80)),
                (
                    "page",
                    models.CharField(
                        choices=[("log", "Log"), ("reports", "Reports")], max_length=8
                    ),
                ),
                ("query", models.TextField(blank=True, help_text="As in the address.")),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "owner", "page", "name"), name="audit_view_name_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="StreamCursor",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("chain_id", models.UUIDField()),
                ("seq", models.BigIntegerField()),
                (
                    "stream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cursors",
                        to="audit.auditstream",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("stream", "chain_id"), name="audit_stream_cursor_once"
                    )
                ],
            },
        ),
        run_sql_file(SQL, "tenant_references"),
        run_sql_file(SQL, "search"),
        OnDatabase(create_triggers),
    ]
    operations = [TablesAtOnce(operations)]
