"""What the model that judged a check's answer said of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0052_count_versions_of_drafts"),
    ]

    operations = [
        migrations.AddField(
            model_name="checkresult",
            name="judged",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="What the model that judged the answer said of it.",
            ),
        ),
    ]
