"""Fill in whose earlier calls and files are: some at once, so that nobody who works waits for all of them.

Where it breaks off, running it again goes on with what is left.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import OuterRef, Subquery

AT_ONCE = 2_000


def fill_in_owners(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take each row's owner from its conversation, the oldest rows first."""
    alias = schema_editor.connection.alias
    message = apps.get_model("chat", "Message")._base_manager.using(alias)
    owner = message.filter(pk=OuterRef("message_id")).values("conversation__owner")
    for name in ("ToolCall", "Attachment"):
        rows = apps.get_model("chat", name)._base_manager.using(alias)
        left = rows.filter(owner=None).order_by("pk").values_list("pk", flat=True)
        some = list(left[:AT_ONCE])
        while some:
            rows.filter(pk__in=some).update(owner=Subquery(owner[:1]))
            some = list(left.filter(pk__gt=some[-1])[:AT_ONCE])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0042_owners_of_calls_and_files")]

    operations = [migrations.RunPython(fill_in_owners, migrations.RunPython.noop)]
