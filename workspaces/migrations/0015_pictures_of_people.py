"""The pictures that people give of themselves."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0014_jobs_workers_and_versions"),
    ]

    operations = [
        migrations.CreateModel(
            name="PersonPicture",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("content", models.BinaryField()),
            ],
        ),
        migrations.AddField(
            model_name="user",
            name="picture_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Of the picture that they gave, for its address. Empty: none.",
                max_length=16,
            ),
        ),
    ]
