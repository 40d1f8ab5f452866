"""MCP servers, what they offer, and the gate to it."""

from django.apps import AppConfig


class McpServersConfig(AppConfig):
    name = "mcp_servers"
    verbose_name = "MCP servers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import mcp_servers.pages.admin  # noqa: F401 - the admin's classes register themselves
        from mcp_servers.client import metrics
        from mcp_servers.klavis import host
        from mcp_servers.klavis.lasting import listen_to_changes
        from mcp_servers.klavis.removals import listen_to_deletions
        from mcp_servers.klavis.source import KlavisSource
        from mcp_servers.models import (
            ActionRule,
            CatalogueChoice,
            KlavisAccount,
            KlavisInstance,
            McpServer,
            McpTool,
        )
        from mcp_servers.registry import reporting, services
        from mcp_servers.registry.catalogue.own import KnownSource
        from mcp_servers.registry.catalogue.sources import register_source
        from mcp_servers.registry.services.membership_end import listen_to_leaving
        from mcp_servers.registry.trace.sink import listen_to_traces
        from workspaces.watched import watch

        watch(
            McpServer,
            (
                *("name", "owner", "transport", "url", "program", "parameters", "headers", "env"),
                *("auth_type", "auth_config", "connection_config", "is_active", "is_blocked"),
                *("trusts_annotations", "allows_new_tools", "answers_elicitation", "sampling"),
                *("uses_instructions", "sampling_daily_tokens", "sampling_provider_id", "roots"),
            ),
        )
        watch(CatalogueChoice, ("source", "slug", "is_for_everybody"))
        # Tools come and go with what servers list; whether they may be called is a person's decision.
        watch(
            McpTool,
            ("is_enabled", "approval_override", "cache_seconds", "approved_hash"),
            verbs=("UPDATE",),
        )
        watch(KlavisAccount, ("base_url", "api_key", "dialect", "is_active"))
        watch(KlavisInstance, ("user", "server_name", "is_read_only", "uses_rest"))
        watch(ActionRule, ("service", "category", "action", "effect"))
        register_source(KnownSource())
        register_source(KlavisSource())
        reporting.tell_reports()
        services.listen_to_servers()
        listen_to_leaving()
        host.register()
        listen_to_changes()
        listen_to_deletions()
        listen_to_traces()
        metrics.register()
