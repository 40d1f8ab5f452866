from django.db import migrations


class Migration(migrations.Migration):
    """From here on the three tables of Klavis belong to its own app, which makes them where they are missing."""

    dependencies = [
        ("mcp_servers", "0003_register_transports"),
    ]

    operations: list[migrations.operations.base.Operation] = []
