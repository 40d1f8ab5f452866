"""Turns hold what the request that is under way is believed to cost."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0049_search_new_calls_and_files_fast"),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="held_cost",
            field=models.DecimalField(decimal_places=6, max_digits=14, null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="held_shared",
            field=models.UUIDField(help_text="The shared provider that is asked.", null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="held_shared_cost",
            field=models.DecimalField(
                decimal_places=6,
                help_text="By the list prices of a shared provider.",
                max_digits=14,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="held_tokens",
            field=models.BigIntegerField(null=True),
        ),
    ]
