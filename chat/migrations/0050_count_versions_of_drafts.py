"""How often a draft has changed, so that no device replaces what it has not seen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0049_search_new_calls_and_files_fast"),
    ]

    operations = [
        migrations.AddField(
            model_name="draft",
            name="version",
            field=models.PositiveIntegerField(
                db_default=1,
                default=1,
                help_text="Counts its changes, so that no device replaces what it has not seen.",
            ),
        ),
    ]
