from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0004_klavis_is_an_app"),
    ]

    operations = [
        migrations.AddField(
            model_name="mcpserver",
            name="is_used_everywhere",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="In every bud that takes all tools; of a person's own server: in all their chats.",
            ),
        ),
    ]
