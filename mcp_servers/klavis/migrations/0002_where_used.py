"""Where the server of a hosted service is to be used, once it is there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("klavis", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="klavisinstance",
            name="bud_ids",
            field=models.JSONField(db_default=[], default=list, editable=False),
        ),
        migrations.AddField(
            model_name="klavisinstance",
            name="is_used_everywhere",
            field=models.BooleanField(db_default=True, default=True, editable=False),
        ),
    ]
