from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

import workspaces.secrets
from workspaces.database.migration_operations import TablesUnlessThere
from workspaces.database.sql_files import run_sql_file


class Migration(migrations.Migration):
    """Three tables. Earlier versions made them with those of the servers' app; there they stay as they are."""

    initial = True

    dependencies = [
        ("mcp_servers", "0004_klavis_is_an_app"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        TablesUnlessThere(
            [
                migrations.CreateModel(
                    name="KlavisRemoval",
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
                        ("workspace_id", models.UUIDField(editable=False)),
                        ("base_url", models.CharField(editable=False, max_length=2048)),
                        ("dialect", models.CharField(editable=False, max_length=10)),
                        (
                            "api_key",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("instance", "Instance"),
                                    ("strata", "Several services"),
                                    ("user", "Everything of one account"),
                                ],
                                editable=False,
                                max_length=10,
                            ),
                        ),
                        (
                            "remote_id",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        ("label", models.CharField(editable=False, max_length=100)),
                        ("attempts", models.PositiveIntegerField(default=0, editable=False)),
                        (
                            "next_attempt_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        (
                            "last_error",
                            models.CharField(blank=True, editable=False, max_length=300),
                        ),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        "verbose_name": "deletion at Klavis",
                        "verbose_name_plural": "deletions at Klavis",
                        "db_table": "mcp_servers_klavisremoval",
                        "ordering": ["created_at", "id"],
                        "base_manager_name": "unscoped",
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["next_attempt_at"], name="klavis_removal_due")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="KlavisAccount",
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
                            "base_url",
                            models.CharField(
                                default="https://api.klavis.ai",
                                max_length=2048,
                                verbose_name="base URL",
                            ),
                        ),
                        (
                            "api_key",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, null=True, verbose_name="API key"
                            ),
                        ),
                        (
                            "dialect",
                            models.CharField(
                                choices=[
                                    ("auto", "Find out"),
                                    ("current", "Current"),
                                    ("older", "Older, up to 2.7"),
                                ],
                                default="auto",
                                max_length=10,
                                verbose_name="API",
                            ),
                        ),
                        (
                            "is_active",
                            models.BooleanField(default=True, verbose_name="switched on"),
                        ),
                        (
                            "found_dialect",
                            models.CharField(blank=True, editable=False, max_length=10),
                        ),
                        (
                            "user_key",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        ("catalogue", models.JSONField(default=list, editable=False)),
                        ("catalogue_read_at", models.DateTimeField(editable=False, null=True)),
                        ("checked_at", models.DateTimeField(editable=False, null=True)),
                        ("problem", models.CharField(blank=True, editable=False, max_length=300)),
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
                        "verbose_name": "Klavis account",
                        "db_table": "mcp_servers_klavisaccount",
                        "abstract": False,
                        "base_manager_name": "unscoped",
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace",), name="klavis_account_one"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="KlavisInstance",
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
                        ("server_name", models.CharField(editable=False, max_length=200)),
                        ("title", models.CharField(editable=False, max_length=60)),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("single", "One service"),
                                    ("strata", "Several services behind one server"),
                                ],
                                default="single",
                                editable=False,
                                max_length=10,
                            ),
                        ),
                        ("services", models.JSONField(default=list, editable=False)),
                        (
                            "instance_id",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        (
                            "server_url",
                            workspaces.secrets.EncryptedTextField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        (
                            "oauth_urls",
                            workspaces.secrets.EncryptedJSONField(
                                blank=True, default=None, editable=False, null=True
                            ),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("creating", "Being made"),
                                    ("waiting_for_sign_in", "Waiting for sign-in"),
                                    ("ready", "Ready"),
                                    ("failed", "Failed"),
                                ],
                                default="creating",
                                editable=False,
                                max_length=20,
                            ),
                        ),
                        ("reason", models.CharField(blank=True, editable=False, max_length=300)),
                        (
                            "is_read_only",
                            models.BooleanField(default=False, verbose_name="only reads"),
                        ),
                        (
                            "uses_rest",
                            models.BooleanField(
                                default=False, verbose_name="through the provider's REST interface"
                            ),
                        ),
                        ("polls", models.PositiveIntegerField(default=0, editable=False)),
                        ("next_poll_at", models.DateTimeField(editable=False, null=True)),
                        ("poll_until", models.DateTimeField(editable=False, null=True)),
                        ("last_checked_at", models.DateTimeField(editable=False, null=True)),
                        (
                            "begun_by",
                            models.ForeignKey(
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                editable=False,
                                null=True,
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
                        (
                            "server",
                            models.OneToOneField(
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="klavis",
                                to="mcp_servers.mcpserver",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "Klavis instance",
                        "db_table": "mcp_servers_klavisinstance",
                        "ordering": ["title", "id"],
                        "abstract": False,
                        "base_manager_name": "unscoped",
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                fields=["state", "next_poll_at"], name="klavis_instance_polls"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("user__isnull", False)),
                                fields=("workspace", "user", "server_name"),
                                name="klavis_instance_of_person",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("user__isnull", True)),
                                fields=("workspace", "server_name"),
                                name="klavis_instance_of_workspace",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                run_sql_file(Path(__file__).parent / "sql", "tenant_references"),
            ]
        )
    ]
