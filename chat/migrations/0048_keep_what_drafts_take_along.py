"""What a draft takes along, beside its text."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0047_index_earlier_calls_and_files"),
    ]

    operations = [
        migrations.AddField(
            model_name="draft",
            name="attachments",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text="Files and resources that were chosen, as the writer's page shows them.",
            ),
        ),
    ]
