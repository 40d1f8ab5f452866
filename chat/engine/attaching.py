"""Resources that a person attaches to a message: named here, read when the turn begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from chat.models import Attachment, Conversation, Message
from chat.usable_servers import servers_of
from mcp_servers.models import McpResource
from mcp_servers.registry.services.watching import watch_resources
from workspaces.errors import InvalidInput

MOST_ATTACHMENTS: Final = 10
LONGEST_URI: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRef:
    """One resource as the page or a program names it."""

    server_id: UUID
    uri: str
    resource_id: UUID | None = None
    """The listed resource, or the template that the address was made of."""

    def as_json(self) -> dict[str, str | None]:
        """As a queued message keeps it."""
        resource_id = str(self.resource_id) if self.resource_id else None
        return {"server_id": str(self.server_id), "uri": self.uri, "resource_id": resource_id}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ResourceRef:
        """What `as_json` gave."""
        resource_id = raw.get("resource_id")
        return cls(
            server_id=UUID(raw["server_id"]),
            uri=raw["uri"],
            resource_id=UUID(resource_id) if resource_id else None,
        )


def check_refs(conversation: Conversation, refs: Sequence[ResourceRef]) -> list[ResourceRef]:
    """The references without doubles. Needs `bud` loaded.

    Raises:
        InvalidInput: too many, a malformed address, or a server that this conversation may not use.
    """
    if not refs:
        return []
    unique = list({(ref.server_id, ref.uri): ref for ref in refs}.values())
    if len(unique) > MOST_ATTACHMENTS:
        raise InvalidInput(fields={"attachments": [f"At most {MOST_ATTACHMENTS} resources."]})
    usable = {one.server_id for one in servers_of(conversation.bud, conversation) if one.is_usable}
    for ref in unique:
        if not ref.uri or len(ref.uri) > LONGEST_URI or not ref.uri.isprintable():
            raise InvalidInput(fields={"attachments": ["This is not the address of a resource."]})
        if ref.server_id not in usable:
            raise InvalidInput(fields={"attachments": ["This chat does not use that server."]})
    return unique


def usable_refs(conversation: Conversation, refs: Sequence[ResourceRef]) -> list[ResourceRef]:
    """Those of once checked references whose servers the conversation may still use."""
    if not refs:
        return []
    usable = {one.server_id for one in servers_of(conversation.bud, conversation) if one.is_usable}
    return [ref for ref in refs if ref.server_id in usable]


def attach(message: Message, conversation: Conversation, refs: Sequence[ResourceRef]) -> None:
    """Store checked references with a new message, and have their servers tell when they change."""
    if not refs:
        return
    workspace_id = message.workspace_id
    names = {one.server_id: one.label for one in servers_of(conversation.bud, conversation)}
    offered: Any = McpResource.objects.for_workspace(workspace_id).filter(
        server_id__in={ref.server_id for ref in refs}
    )
    by_id = {row.pk: row for row in offered.filter(pk__in=[ref.resource_id for ref in refs])}
    by_address = {
        (row.server_id, row.uri): row
        for row in offered.filter(is_template=False, uri__in=[ref.uri for ref in refs])
    }
    watched = []
    for position, ref in enumerate(refs):
        listed = by_address.get((ref.server_id, ref.uri))
        row = listed or _of_server(by_id.get(ref.resource_id), ref)
        Attachment.objects.create(
            workspace_id=workspace_id,
            message=message,
            position=position,
            server_id=ref.server_id,
            server_name=names.get(ref.server_id, ""),
            resource_id=row.pk if row is not None else None,
            uri=ref.uri,
            title=str(row)[:256] if row is not None and not row.is_template else ref.uri[:256],
            mime_type=row.mime_type if row is not None else "",
        )
        if listed is not None and not listed.is_watched:
            watched.append(listed.pk)
    if watched:
        watch_resources(workspace_id=workspace_id, resource_ids=watched)


def _of_server(row: McpResource | None, ref: ResourceRef) -> McpResource | None:
    return row if row is not None and row.server_id == ref.server_id else None
