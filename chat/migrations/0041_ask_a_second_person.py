from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0040_spending_limits")]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="approval_rule_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="needs_second_person",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Only an admin or owner who did not ask may allow it.",
            ),
        ),
    ]
