"""What a rule does is said in words wherever it is shown. No table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0014_note_forgotten_registrations"),
    ]

    operations = [
        migrations.AlterField(
            model_name="actionrule",
            name="effect",
            field=models.CharField(
                choices=[
                    ("confirm", "Ask each time"),
                    ("deny", "Refuse"),
                    ("auto", "Run by itself"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="callrule",
            name="effect",
            field=models.CharField(
                choices=[
                    ("confirm", "Ask each time"),
                    ("deny", "Refuse"),
                    ("auto", "Run by itself"),
                ],
                max_length=10,
                verbose_name="effect",
            ),
        ),
    ]
