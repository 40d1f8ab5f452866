"""The triggers find the statement that covers a place without reading all statements before it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_last_words_of_alerts")]
    operations = [
        migrations.AddIndex(
            model_name="audittombstone",
            index=models.Index(
                fields=["chain_id", "kind", "last_seq", "first_seq"], name="audit_tombstone_end"
            ),
        ),
        migrations.RemoveIndex(model_name="audittombstone", name="audit_tombstone_range"),
    ]
