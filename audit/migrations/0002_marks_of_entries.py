"""Each entry has a keyed mark; like what is sealed, it is never changed."""

from django.db import migrations, models

from audit.append_only import create_triggers, remove_triggers
from workspaces.database.migration_operations import OnDatabase


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [
        OnDatabase(remove_triggers),
        migrations.AddField(
            model_name="auditentry",
            name="mark",
            field=models.CharField(
                help_text="Keyed, over what is sealed: that Trellis wrote the entry.",
                max_length=64,
                null=True,
            ),
        ),
        OnDatabase(create_triggers),
    ]
