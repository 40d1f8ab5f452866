"""What a workspace lets its people install from the catalogue."""

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0008_oauth_tenant_references"),
        ("workspaces", "0004_installation"),
    ]

    operations = [
        migrations.CreateModel(
            name="CatalogueChoice",
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
                ("source", models.CharField(max_length=20)),
                ("slug", models.CharField(max_length=100)),
                (
                    "is_for_everybody",
                    models.BooleanField(default=False, verbose_name="members may install it"),
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
                "verbose_name": "catalogue choice",
                "ordering": ["source", "slug"],
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "source", "slug"), name="catalogue_choice_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
