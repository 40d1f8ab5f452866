"""Say after what a waiting message was held. The column keeps its name: code of before reads it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0056_hold_what_was_not_sent"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("queuedmessage", "held_by", "held_after"),
                migrations.AlterField(
                    "queuedmessage",
                    "held_after",
                    models.CharField(
                        blank=True,
                        db_column="held_by",
                        db_default="",
                        default="",
                        help_text="How the turn ended after which it was not sent; empty: it waits its turn.",
                        max_length=20,
                    ),
                ),
            ],
        ),
    ]
