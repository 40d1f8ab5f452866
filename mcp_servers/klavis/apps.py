"""Klavis, a hosted MCP provider, as an app: it registers itself with the servers' app, which does not know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from mcp_servers.client.transports import Opener


class KlavisConfig(AppConfig):
    name = "mcp_servers.klavis"
    label = "klavis"
    verbose_name = _("Klavis")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from mcp_servers.client import transports
        from mcp_servers.klavis import instance_state, removals, targets
        from mcp_servers.klavis.host import KlavisHost
        from mcp_servers.klavis.labels import COLUMNS, TABLES
        from mcp_servers.klavis.models import KlavisAccount, KlavisInstance
        from mcp_servers.klavis.source import KlavisSource
        from mcp_servers.models.hosting import register_host
        from mcp_servers.pages import extensions
        from mcp_servers.registry.catalogue.sources import register_source
        from workspaces.audited_tables import audit_table
        from workspaces.labels import EVERYWHERE
        from workspaces.words.columns import name_tables

        name_tables(self, tables=TABLES, columns={**EVERYWHERE, **COLUMNS})
        audit_table(KlavisAccount, ("base_url", "api_key", "dialect", "is_active"))
        audit_table(KlavisInstance, ("user", "server_name", "is_read_only", "uses_rest"))
        transports.register(
            transports.Transport(name=targets.KLAVIS_REST, label="Klavis API", load=_load_rest)
        )
        register_host(KlavisHost())
        register_source(KlavisSource())
        extensions.register(urls="mcp_servers.klavis.urls", api="mcp_servers.klavis.api")
        instance_state.listen_to_changes()
        removals.listen_to_deletions()


def _load_rest() -> Opener:
    from mcp_servers.klavis.rest_transport import open_streams

    return open_streams
