"""What the rest of Trellis may ask about the servers that Klavis runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse

from mcp_servers.client import transports
from mcp_servers.klavis import reconciling
from mcp_servers.klavis.targets import KLAVIS_REST
from mcp_servers.models import InstanceState, KlavisInstance
from mcp_servers.models.hosting import KLAVIS, register_host

if TYPE_CHECKING:
    from mcp_servers.models import McpServer


class KlavisHost:
    """See hosting.Host."""

    def waits_for_sign_in(self, server: McpServer) -> bool:
        instance = _instance_of(server)
        return instance is not None and instance.state == InstanceState.WAITING_FOR_SIGN_IN

    def note_lost_sign_in(self, server: McpServer) -> None:
        if (instance := _instance_of(server)) is not None:
            reconciling.note_signed_out(instance)

    def sign_in_path(self, server: McpServer) -> str | None:
        instance = _instance_of(server)
        if instance is None:
            return None
        return reverse("mcp_servers:klavis_instance", args=[server.workspace.slug, instance.pk])


def register() -> None:
    """Called once at start."""
    register_host(KLAVIS, KlavisHost())
    transports.register(transports.Transport(name=KLAVIS_REST, label="Klavis API", load=_load_rest))


def _load_rest() -> transports.Opener:
    from mcp_servers.klavis.rest_transport import open_streams

    return open_streams


def _instance_of(server: McpServer) -> KlavisInstance | None:
    return KlavisInstance.objects.for_workspace(server.workspace_id).filter(server=server).first()
