"""Let earlier calls and attached files be found: some at once, so that nobody who works waits for all of them.

Where it breaks off, running it again begins anew, and leaves nothing twice.
"""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F

AT_ONCE = 500


def index_earlier(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Touch each row, the oldest first: the triggers keep its words."""
    connection = schema_editor.connection
    for name in ("ToolCall", "Attachment"):
        rows = apps.get_model("chat", name)._base_manager.using(connection.alias)
        left = rows.order_by("pk").values_list("pk", flat=True)
        some = list(left[:AT_ONCE])
        while some:
            rows.filter(pk__in=some).update(status=F("status"))
            some = list(left.filter(pk__gt=some[-1])[:AT_ONCE])
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE chat_beside_lexemes")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("chat", "0046_find_words_beside_messages")]

    operations = [migrations.RunPython(index_earlier, migrations.RunPython.noop)]
