"""MCP servers, what they offer, and the gate to it."""

from django.apps import AppConfig


class McpServersConfig(AppConfig):
    name = "mcp_servers"
    verbose_name = "MCP servers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from mcp_servers import services

        services.listen_to_servers()
