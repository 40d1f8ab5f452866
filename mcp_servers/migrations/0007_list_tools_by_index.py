from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0006_keep_what_checks_write_apart"),
        ("workspaces", "0005_join_links_sessions_and_requests"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="mcptool",
            index=models.Index(fields=["workspace", "name", "id"], name="mcp_tool_list"),
        ),
        migrations.AddIndex(
            model_name="mcptool",
            index=models.Index(
                condition=models.Q(
                    models.Q(("approved_hash", models.F("definition_hash")), _negated=True),
                    ("removed_at__isnull", True),
                ),
                fields=["server"],
                name="mcp_tool_held",
            ),
        ),
    ]
