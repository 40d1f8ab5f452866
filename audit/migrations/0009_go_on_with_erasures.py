"""Erasures that are on record are done, whatever becomes of the process that began."""

import django.db.models.manager
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0008_sent_files"),
    ]

    operations = [
        migrations.CreateModel(
            name="PendingErasure",
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
                ("person_id", models.UUIDField()),
                ("asked_at", models.DateTimeField(help_text="Of what was entered up to then.")),
            ],
            options={
                "ordering": ["asked_at"],
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace_id", "person_id"), name="audit_erasure_pending_once"
                    )
                ],
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
    ]
