"""Requests beside the steps of turns hold what they are believed to cost."""

import django.db.models.deletion
import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0053_keep_what_judges_say"),
        ("workspaces", "0016_keep_the_order_of_saved_views"),
    ]

    operations = [
        migrations.CreateModel(
            name="SpendingHold",
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
                    "person",
                    models.UUIDField(help_text="Who pays; none: nobody in particular.", null=True),
                ),
                (
                    "shared",
                    models.UUIDField(help_text="The shared provider that is asked.", null=True),
                ),
                ("tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=6, max_digits=14)),
                (
                    "shared_cost",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="By the list prices of a shared provider.",
                        max_digits=14,
                    ),
                ),
                ("alive_until", models.DateTimeField(help_text="Put off while its process lives.")),
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
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
