"""All tables of the app at once, in a new database. Others go through the migrations one by one."""

from django.conf import settings
from django.db import migrations

from workspaces.database.migration_operations import TablesAtOnce, operations_of

FIRST = (
    "0001_servers_tools_and_approvals",
    "0002_tenant_references",
    "0003_scopes_resources_inputs_trace",
    "0004_more_tenant_references",
    "0005_program_pins",
    "0006_call_counts",
    "0007_oauth",
    "0008_oauth_tenant_references",
    "0009_catalogue_choice",
    "0010_klavis",
    "0011_klavis_tenant_references",
    "0012_grants_looked_at",
)
"""What `0001_initial` stands for in the oldest databases. There its tables stay as they are."""
REST = (
    "0001_initial",
    "0002_trace_of_checks",
    "0003_register_transports",
    "0004_klavis_is_an_app",
    "0005_use_servers_everywhere",
    "0006_keep_what_checks_write_apart",
    "0007_list_tools_by_index",
    "0008_server_icons",
)


class Migration(migrations.Migration):
    initial = True
    replaces = [("mcp_servers", name) for name in (*FIRST, *REST)]

    dependencies = [
        ("workspaces", "0006_keep_the_theme_of_people"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [TablesAtOnce(operations_of("mcp_servers", REST))]
