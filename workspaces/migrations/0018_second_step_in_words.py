"""The second step may be a passkey as well, so it is no longer called a code."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0017_two_step_verification"),
    ]

    operations = [
        migrations.AlterField(
            model_name="user",
            name="has_two_steps",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Asked for a second step after the password. Follows the rows of `Authenticator`.",
                verbose_name="two-step verification",
            ),
        ),
    ]
