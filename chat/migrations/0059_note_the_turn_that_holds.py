from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0057_name_after_what_it_was_held"),
    ]

    operations = [
        migrations.AddField(
            model_name="queuedmessage",
            name="held_after_turn",
            field=models.UUIDField(
                help_text="The turn after which it was not sent; a value, not a key.", null=True
            ),
        ),
    ]
