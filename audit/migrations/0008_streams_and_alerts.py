"""Sinks of the log, and rules that watch it."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets

REFERENCES = ["audit_alert", "audit_alertdelivery"]


def keep_to_workspaces(apps, schema_editor):
    """An alert of one workspace cannot hang on a rule of another, on PostgreSQL."""
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        "ALTER TABLE audit_alertrule ADD CONSTRAINT audit_alertrule_tenant"
        " UNIQUE (workspace_id, id)"
    )
    for table in REFERENCES:
        schema_editor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_rule_id_tenant"
            " FOREIGN KEY (workspace_id, rule_id) REFERENCES audit_alertrule (workspace_id, id)"
            " DEFERRABLE INITIALLY DEFERRED"
        )


def let_go(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for table in REFERENCES:
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_rule_id_tenant")
    schema_editor.execute("ALTER TABLE audit_alertrule DROP CONSTRAINT audit_alertrule_tenant")


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0007_rollups_and_reviews"),
        ("workspaces", "0004_installation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.RunPython(keep_to_workspaces, let_go),
    ]
