"""How large an attached resource is, so that a page knows it before it asks for the whole."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0054_hold_what_requests_beside_turns_may_cost"),
    ]

    operations = [
        migrations.AddField(
            model_name="attachment",
            name="size",
            field=models.PositiveIntegerField(
                help_text="Bytes of the content. None: a file, or not known.", null=True
            ),
        ),
    ]
