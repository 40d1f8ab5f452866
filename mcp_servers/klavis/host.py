"""What the rest of Trellis may ask about the servers that Klavis runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.urls import reverse

from mcp_servers.klavis import asking, reconciling, targets
from mcp_servers.klavis.models import HOST, InstanceState, KlavisInstance

if TYPE_CHECKING:
    from mcp_servers.client.transports.targets import HttpSpec
    from mcp_servers.models import McpServer


class KlavisHost:
    """See hosting.Host."""

    name = HOST
    label = "Klavis"
    home = "klavis/"
    about = "Klavis hosts servers for many more services, such as Gmail, Slack and YouTube."

    def is_set_up(self, workspace_id: UUID) -> bool:
        return asking.is_set_up(workspace_id)

    def target_of(self, server: McpServer) -> HttpSpec:
        return targets.target_of(server)

    def fingerprint_of(self, server: McpServer) -> list[object]:
        return targets.fingerprint_of(server)

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

    def prepare(self, servers: Sequence[McpServer]) -> None:
        prefetch_related_objects(servers, "klavis")

    def title_of(self, server: McpServer) -> str:
        instance = getattr(server, "klavis", None)
        return instance.title if instance is not None else ""

    def page_of(self, server: McpServer) -> str:
        instance = getattr(server, "klavis", None)
        return f"{self.home}{instance.pk}/" if instance is not None else ""


def _instance_of(server: McpServer) -> KlavisInstance | None:
    return KlavisInstance.objects.for_workspace(server.workspace_id).filter(server=server).first()
