from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="tracemessage",
            name="is_check",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
