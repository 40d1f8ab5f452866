"""MCP servers, what they offer, and the gate to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from audit.retention.periods import RetentionPeriod


class McpServersConfig(AppConfig):
    name = "mcp_servers"
    verbose_name = _("MCP servers")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from audit.retention.periods import register_kept
        from mcp_servers.client import metrics
        from mcp_servers.endpoint.sign_in import ending
        from mcp_servers.models import (
            ActionRule,
            CallRule,
            CatalogueChoice,
            KnownClient,
            McpServer,
            McpTool,
        )
        from mcp_servers.models.labels import COLUMNS, TABLES
        from mcp_servers.registry import metrics as registry_metrics
        from mcp_servers.registry import reporting, services
        from mcp_servers.registry.access import read_servers, read_sign_ins, read_tools
        from mcp_servers.registry.catalogue.platform_source import PlatformSource
        from mcp_servers.registry.catalogue.sources import register_source
        from mcp_servers.registry.services.membership_end import end_rows_of
        from mcp_servers.registry.trace.sink import listen_to_traces
        from workspaces.audited_tables import audit_table
        from workspaces.database.postgresql.policies import keep_for_platform
        from workspaces.labels import EVERYWHERE
        from workspaces.people.access import register_access
        from workspaces.people.memberships import listen_to_leaving
        from workspaces.words.columns import name_tables

        name_tables(self, tables=TABLES, columns={**EVERYWHERE, **COLUMNS})
        kept = {"id", "workspace", "created_at", "updated_at"}
        entered = [field.name for field in McpServer._meta.concrete_fields]
        audit_table(McpServer, [name for name in entered if name not in kept])
        audit_table(CatalogueChoice, ("source", "slug", "is_for_everybody"))
        # Tools come and go with what servers list; whether they may be called is a person's decision.
        audit_table(
            McpTool,
            ("is_enabled", "approval_override", "cache_seconds", "approved_hash"),
            verbs=("UPDATE",),
        )
        audit_table(ActionRule, ("service", "category", "action", "effect"))
        entered = [field.name for field in CallRule._meta.concrete_fields]
        audit_table(CallRule, [name for name in entered if name not in kept])
        register_source(PlatformSource())
        register_access("server", read_servers)
        register_access("tool", read_tools)
        register_access("sign-in", read_sign_ins)
        reporting.tell_reports()
        register_kept(_kept)
        services.listen_to_servers()
        listen_to_leaving(parted=end_rows_of, claimed=end_rows_of)
        ending.listen()
        keep_for_platform(KnownClient)
        listen_to_traces()
        metrics.register()
        registry_metrics.register()


def _kept() -> Sequence[RetentionPeriod]:
    from mcp_servers.endpoint.sign_in import retention_periods as of_clients
    from mcp_servers.registry import retention_periods

    return (*retention_periods.list_periods(), *of_clients.list_periods())
