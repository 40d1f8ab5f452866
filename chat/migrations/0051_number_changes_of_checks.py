"""Checks of buds have a version, so that nobody replaces a change that they have not seen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0050_hold_what_requests_may_cost"),
    ]

    operations = [
        migrations.AddField(
            model_name="budcheck",
            name="version",
            field=models.PositiveIntegerField(
                db_default=1,
                default=1,
                editable=False,
                help_text="Grows with each change, so that nobody replaces what they have not seen.",
            ),
        ),
    ]
