"""What was found of a model is said in words wherever it is shown. No table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0058_keep_for_which_turn_messages_are_held"),
    ]

    operations = [
        migrations.AlterField(
            model_name="providermodel",
            name="learned_protocol",
            field=models.CharField(
                blank=True,
                choices=[
                    ("auto", "Whatever the model understands"),
                    ("native", "Function calling"),
                    ("fenced_json", "Fenced JSON, for models without function calling"),
                ],
                help_text="What it was found to need; empty: nothing has been found out.",
                max_length=12,
            ),
        ),
    ]
