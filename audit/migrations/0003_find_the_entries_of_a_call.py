"""The entries of a call are found in their order, within a workspace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_marks_of_entries")]
    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                fields=["call_id", "workspace_id", "created_at", "id"], name="audit_of_call"
            ),
        ),
        migrations.RemoveIndex(model_name="auditentry", name="audit_by_call"),
    ]
