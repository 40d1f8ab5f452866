"""For which answer a waiting message was held: another one that is retried does not take it along."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0057_name_after_what_it_was_held"),
    ]

    operations = [
        migrations.AddField(
            model_name="queuedmessage",
            name="held_for",
            field=models.UUIDField(
                help_text="That turn: when it is retried, this waits for it again.",
                null=True,
            ),
        ),
    ]
