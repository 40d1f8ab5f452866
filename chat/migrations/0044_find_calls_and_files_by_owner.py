"""A search reads a person's own calls and files, however many others have."""

from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [("chat", "0043_fill_in_owners_of_calls_and_files")]

    operations = [
        migrations.AddIndex(
            model_name="attachment",
            index=models.Index(
                fields=["owner", "workspace", "message"],
                condition=models.Q(version__isnull=False),
                name="attachment_of_owner",
            ),
        ),
        *(
            migrations.AddIndex(
                model_name="toolcall",
                index=models.Index(
                    "owner", "workspace", Upper(column), "message", name=f"tool_call_of_{name}"
                ),
            )
            for column, name in (
                ("tool_name", "tool"),
                ("server_name", "server"),
                ("builtin", "builtin"),
            )
        ),
        *(
            migrations.RemoveIndex(model_name="toolcall", name=f"tool_call_by_{name}")
            for name in ("tool", "server", "builtin")
        ),
    ]
