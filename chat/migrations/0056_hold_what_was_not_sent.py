"""Which waiting messages were not sent since the turn before them did not end well: their writer sends those."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0055_keep_size_of_resources"),
    ]

    operations = [
        migrations.AddField(
            model_name="queuedmessage",
            name="held_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="How the turn ended after which it was not sent; empty: it waits its turn.",
                max_length=20,
            ),
        ),
    ]
