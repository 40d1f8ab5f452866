from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0013_keep_questions_turned_away"),
    ]

    operations = [
        migrations.AddField(
            model_name="oauthclient",
            name="forgotten_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="stdioprogram",
            name="is_enabled",
            field=models.BooleanField(default=True, verbose_name="on offer"),
        ),
    ]
