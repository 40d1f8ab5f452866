import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0008_server_icons"),
        ("workspaces", "0013_let_mcp_clients_in"),
    ]

    operations = [
        migrations.AddField(
            model_name="toolpermission",
            name="asks_always",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.CreateModel(
            name="CallRule",
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
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        help_text="People read it on the card, and the model when a call is refused.",
                        max_length=500,
                        verbose_name="reason",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="on")),
                ("servers", models.JSONField(default=list, verbose_name="servers")),
                ("tools", models.JSONField(default=list, verbose_name="tools")),
                ("roles", models.JSONField(blank=True, default=list, verbose_name="roles")),
                (
                    "conditions",
                    models.JSONField(blank=True, default=list, verbose_name="conditions"),
                ),
                (
                    "effect",
                    models.CharField(
                        choices=[("auto", "auto"), ("confirm", "confirm"), ("deny", "deny")],
                        max_length=10,
                        verbose_name="effect",
                    ),
                ),
                (
                    "approver",
                    models.CharField(
                        choices=[
                            ("requester", "The person who asked"),
                            ("second_person", "A second person: an admin or owner"),
                        ],
                        default="requester",
                        max_length=20,
                        verbose_name="who may allow it",
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
                "verbose_name": "call rule",
                "verbose_name_plural": "call rules",
                "ordering": ["name", "id"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name"), name="call_rule_name_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
