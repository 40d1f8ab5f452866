"""MCP servers, what they offer, and the gate to it."""

from django.apps import AppConfig


class McpServersConfig(AppConfig):
    name = "mcp_servers"
    verbose_name = "MCP servers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from mcp_servers import metrics, reporting, services
        from mcp_servers.services.leaving import listen_to_leaving
        from mcp_servers.trace.sink import listen_to_traces

        reporting.tell_reports()
        services.listen_to_servers()
        listen_to_leaving()
        listen_to_traces()
        metrics.register()
