"""A workspace may let tools that only read reach outside without asking, after content from outside was read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="reads_outside_unasked",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="After content from outside was read, tools that only read may reach outside without asking.",
            ),
        ),
    ]
