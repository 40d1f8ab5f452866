from pathlib import Path

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from workspaces.database.sql_files import run_sql_file

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("mcp_servers", "0007_list_tools_by_index"),
        ("workspaces", "0006_keep_the_theme_of_people"),
    ]

    operations = [
        migrations.CreateModel(
            name="ServerIcon",
            fields=[
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "server",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="icon",
                        serialize=False,
                        to="mcp_servers.mcpserver",
                    ),
                ),
                ("source_hash", models.CharField(editable=False, max_length=64)),
                ("content", models.BinaryField()),
                ("digest", models.CharField(blank=True, editable=False, max_length=16)),
                (
                    "workspace",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "verbose_name": "icon of an MCP server",
                "abstract": False,
                "base_manager_name": "unscoped",
                "default_manager_name": "unscoped",
            },
            managers=[
                ("unscoped", django.db.models.manager.Manager()),
            ],
        ),
        run_sql_file(SQL, "server_icon_tenant"),
    ]
