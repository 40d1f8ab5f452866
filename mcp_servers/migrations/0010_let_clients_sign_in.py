"""Other MCP clients that people sign in with, what they allowed them, and the hashes of their tokens."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.conf import settings
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0009_call_rules"),
        ("workspaces", "0013_let_mcp_clients_in"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KnownClient",
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
                ("client_id", models.CharField(max_length=500, unique=True)),
                (
                    "via",
                    models.CharField(
                        choices=[
                            ("document", "Client ID metadata document"),
                            ("registration", "Registered by itself"),
                        ],
                        max_length=12,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("redirect_uris", models.JSONField(default=list)),
                ("read_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "MCP client",
                "indexes": [models.Index(fields=["used_at", "read_at"], name="known_client_age")],
            },
        ),
        migrations.CreateModel(
            name="ClientSignIn",
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
                ("client_name", models.CharField(max_length=100)),
                ("redirect_uri", models.CharField(max_length=500)),
                ("redirect_host", models.CharField(max_length=255)),
                ("scopes", models.JSONField(default=list)),
                ("code_challenge", models.CharField(max_length=43)),
                ("resource", models.CharField(max_length=500)),
                ("proof", models.CharField(max_length=64)),
                ("begun_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField()),
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
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mcp_servers.knownclient",
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in of an MCP client",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="ClientToken",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("code", "Authorization code"),
                            ("access", "Access token"),
                            ("refresh", "Refresh token"),
                        ],
                        max_length=7,
                    ),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "sign_in",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="mcp_servers.clientsignin",
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
                "verbose_name": "token of an MCP client",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "indexes": [models.Index(fields=["expires_at"], name="client_token_expiry")],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddIndex(
            model_name="clientsignin",
            index=models.Index(fields=["expires_at"], name="client_sign_in_expiry"),
        ),
        run_sql_file(SQL, "client_sign_in_tenant"),
    ]
