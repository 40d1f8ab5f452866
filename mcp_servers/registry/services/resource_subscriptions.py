"""Which resources' changes are heard of: those that somebody attached to a message."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcp_servers.models import McpResource, McpServer


@transaction.atomic
def watch_resources(*, workspace_id: UUID, resource_ids: Collection[UUID]) -> None:
    """Have connections subscribe to these from now on."""
    resources = McpResource.objects.for_workspace(workspace_id).filter(pk__in=resource_ids)
    server_ids = set(resources.values_list("server_id", flat=True))
    resources.update(is_watched=True)
    # What a connection is made from has changed, which only the server's own row can show.
    servers = McpServer.objects.for_workspace(workspace_id).filter(pk__in=server_ids)
    servers.update(updated_at=timezone.now())
