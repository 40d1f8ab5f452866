"""Two who change a hosted server at one moment do not undo each other."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("klavis", "0002_where_used"),
    ]

    operations = [
        migrations.AddField(
            model_name="klavisinstance",
            name="claimed_until",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
