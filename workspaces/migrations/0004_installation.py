"""The one row about the whole installation."""

import uuid_utils.compat
from django.db import migrations, models


def make_row(apps, schema_editor):
    apps.get_model("workspaces", "Installation").objects.create(id=uuid_utils.compat.uuid7())


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0003_personal_servers_and_permissions")]

    operations = [
        migrations.CreateModel(
            name="Installation",
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
                (
                    "epoch",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Grows as long as it runs."
                    ),
                ),
                (
                    "restored_at",
                    models.DateTimeField(
                        help_text="Found to be restored from a backup, and not confirmed yet.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.RunPython(make_row, migrations.RunPython.noop),
    ]
