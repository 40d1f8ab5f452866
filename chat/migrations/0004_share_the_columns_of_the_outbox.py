"""Deliveries of webhooks get the columns that all messages in the outbox have."""

from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    dependencies = [("chat", "0003_keep_what_was_read_from_outside")]

    operations = [
        migrations.AlterField(
            model_name="webhookdelivery",
            name="next_attempt_at",
            field=models.DateTimeField(default=timezone.now),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="webhookdelivery",
            name="status",
            field=models.CharField(
                choices=[
                    ("waiting", "Waiting"),
                    ("delivered", "Delivered"),
                    ("given_up", "Given Up"),
                ],
                default="waiting",
                max_length=10,
            ),
        ),
    ]
