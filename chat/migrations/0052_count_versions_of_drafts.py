"""How often a draft has changed, so that no device replaces what it has not seen."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0051_number_changes_of_checks"),
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
        migrations.AlterField(
            model_name="draft",
            name="written_at",
            field=models.DateTimeField(
                help_text="The last writer wins, where a device does not say which version it has seen."
            ),
        ),
    ]
