"""Resources and files that a person attaches to a message: named here, read when the turn begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.artifacts.calls import reference
from chat.models import ArtifactVersion, Attachment, Conversation, Message
from chat.tools.usable_servers import ChatSetting
from mcp_servers.models import McpResource
from mcp_servers.registry.services.resource_subscriptions import watch_resources
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """One file of the conversation as the page or a program names it."""

    artifact_id: UUID
    version: int | None = None
    """None: the newest."""

    def as_json(self) -> dict[str, str | int | None]:
        """As a queued message keeps it."""
        return {"artifact_id": str(self.artifact_id), "version": self.version}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> FileRef:
        """What `as_json` gave."""
        return cls(artifact_id=UUID(raw["artifact_id"]), version=raw.get("version"))


Ref = ResourceRef | FileRef


def ref_from_json(raw: Mapping[str, Any]) -> Ref:
    """What `as_json` of either gave."""
    return FileRef.from_json(raw) if "artifact_id" in raw else ResourceRef.from_json(raw)


def refs_of(message: Message) -> list[Ref]:
    """What is attached to a message, to attach it again; not files that have gone."""
    rows = Attachment.objects.for_workspace(message.workspace_id).filter(message=message)
    refs: list[Ref] = []
    for row in rows.select_related("version").without_content():
        if row.server_id is not None:
            refs.append(
                ResourceRef(server_id=row.server_id, uri=row.uri, resource_id=row.resource_id)
            )
        elif row.version is not None:
            refs.append(FileRef(artifact_id=row.version.artifact_id, version=row.version.number))
    return refs


def check_refs(conversation: Conversation, refs: Sequence[Ref]) -> list[Ref]:
    """The references without doubles, files with the version that is sent. Needs `bud` loaded.

    Raises:
        InvalidInput: too many, a malformed address, a server that this conversation may not use, or no file of it.
    """
    unique = list({_key(ref): ref for ref in refs}.values())
    if len(unique) > MOST_ATTACHMENTS:
        raise _not_attachable(
            _("Attach at most %(most)s files and resources.") % {"most": MOST_ATTACHMENTS}
        )
    for ref in unique:
        if isinstance(ref, ResourceRef) and not _is_address(ref.uri):
            raise _not_attachable(_("This is not the address of a resource."))
    usable = usable_refs(conversation, unique)
    for ref, found in zip(unique, usable, strict=True):
        if found is None:
            is_file = isinstance(ref, FileRef)
            raise _not_attachable(
                _("This file is not in this chat any more.")
                if is_file
                else _("This chat does not use that server.")
            )
    return [ref for ref in usable if ref is not None]


def _key(ref: Ref) -> tuple[UUID, str | int | None]:
    """What makes two references the same."""
    if isinstance(ref, FileRef):
        return ref.artifact_id, ref.version
    return ref.server_id, ref.uri


def _not_attachable(reason: str) -> InvalidInput:
    return InvalidInput(fields={"attachments": [reason]})


def _is_address(uri: str) -> bool:
    return bool(uri) and len(uri) <= LONGEST_URI and uri.isprintable()


def usable_refs(conversation: Conversation, refs: Sequence[Ref]) -> list[Ref | None]:
    """The same references, files with the version that is sent; None for what is not to be had any more."""
    usable: set[UUID | None] = set()
    if any(isinstance(ref, ResourceRef) for ref in refs):
        servers = ChatSetting.of(conversation).servers()
        usable = {one.server_id for one in servers if one.is_usable}
    versions = _versions(conversation, refs)
    found: list[Ref | None] = []
    for ref in refs:
        if isinstance(ref, ResourceRef):
            found.append(ref if ref.server_id in usable else None)
        else:
            version = versions.get(ref)
            found.append(replace(ref, version=version.number) if version is not None else None)
    return found


def _versions(conversation: Conversation, refs: Sequence[Ref]) -> dict[FileRef, ArtifactVersion]:
    """The versions of files that are there, with their artifacts."""
    files = [ref for ref in refs if isinstance(ref, FileRef)]
    if not files:
        return {}
    rows = ArtifactVersion.objects.for_workspace(conversation.workspace_id).filter(
        artifact__conversation_id=conversation.pk,
        artifact__is_deleted=False,
        artifact__in={ref.artifact_id for ref in files},
    )
    by_number = {(row.artifact_id, row.number): row for row in rows.select_related("artifact")}
    newest = {row.artifact_id: row.artifact.newest for row in by_number.values()}
    return {
        ref: row
        for ref in files
        if (row := by_number.get((ref.artifact_id, ref.version or newest.get(ref.artifact_id, 0))))
    }


def attach(message: Message, conversation: Conversation, refs: Sequence[Ref]) -> list[str]:
    """Store checked references with a new message, and have their servers tell when they change. Gives their names."""
    resources = {at: ref for at, ref in enumerate(refs) if isinstance(ref, ResourceRef)}
    rows = _resources(message, conversation, resources) if resources else []
    versions = _versions(conversation, refs)
    for position, ref in enumerate(refs):
        if isinstance(ref, FileRef) and ref in versions:
            rows.append(file_attachment(message, position, versions[ref]))
    Attachment.objects.bulk_create(rows)
    return [row.title for row in sorted(rows, key=lambda row: row.position)]


def file_attachment(
    message: Message, position: int, version: ArtifactVersion, **fields: Any
) -> Attachment:
    """A file at a message, not stored yet; its version comes with its file."""
    return Attachment(
        workspace_id=message.workspace_id,
        message=message,
        position=position,
        version=version,
        file=reference(version.artifact, version),
        title=version.artifact.name,
        mime_type=version.content_type,
        **fields,
    )


def _resources(
    message: Message, conversation: Conversation, refs: Mapping[int, ResourceRef]
) -> list[Attachment]:
    workspace_id = message.workspace_id
    names = {one.server_id: one.label for one in ChatSetting.of(conversation).servers()}
    offered: Any = McpResource.objects.for_workspace(workspace_id).filter(
        server_id__in={ref.server_id for ref in refs.values()}
    )
    ids = [ref.resource_id for ref in refs.values()]
    by_id = {row.pk: row for row in offered.filter(pk__in=ids)}
    addresses = [ref.uri for ref in refs.values()]
    by_address = {
        (row.server_id, row.uri): row
        for row in offered.filter(is_template=False, uri__in=addresses)
    }
    watched: list[UUID] = []
    rows: list[Attachment] = []
    for position, ref in refs.items():
        listed = by_address.get((ref.server_id, ref.uri))
        row = listed or _of_server(by_id.get(ref.resource_id), ref)
        attached = Attachment(
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
        rows.append(attached)
        if listed is not None and not listed.is_watched:
            watched.append(listed.pk)
    if watched:
        watch_resources(workspace_id=workspace_id, resource_ids=watched)
    return rows


def _of_server(row: McpResource | None, ref: ResourceRef) -> McpResource | None:
    return row if row is not None and row.server_id == ref.server_id else None
