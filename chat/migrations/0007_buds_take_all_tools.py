from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0006_find_words_in_messages"),
    ]

    operations = [
        migrations.AddField(
            model_name="bud",
            name="takes_all_tools",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Uses the servers below and every server of the workspace that is meant for all buds, also those added later.",
                verbose_name="takes all tools",
            ),
        ),
    ]
