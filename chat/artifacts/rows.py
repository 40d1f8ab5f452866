"""Reading the rows of a conversation's files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.artifacts import storage
from chat.models import (
    Artifact,
    ArtifactVersion,
    ChatImport,
    Conversation,
    DataCopyPart,
    FileReading,
    KnowledgeFile,
)
from workspaces.database.prepared import PreparedRows
from workspaces.errors import NotFound

FILES: Final = (ArtifactVersion, KnowledgeFile, ChatImport, DataCopyPart)
"""Rows whose `path` names a content."""


def artifacts_of(conversation: Conversation) -> list[tuple[Artifact, ArtifactVersion]]:
    """The conversation's files with their newest versions, in the order they were made."""
    return with_newest(
        conversation.workspace_id, _ARTIFACTS.all(conversation.workspace_id, conversation.pk)
    )


def with_newest(
    workspace_id: UUID, artifacts: list[Artifact]
) -> list[tuple[Artifact, ArtifactVersion]]:
    """Each of these with its newest version: one query."""
    if not artifacts:
        return []
    numbers = {row.pk: row.newest for row in artifacts}
    versions = ArtifactVersion.objects.for_workspace(workspace_id).filter(
        artifact__in=numbers, number__in=set(numbers.values())
    )
    newest = {
        version.artifact_id: version
        for version in versions.select_related("made_by")
        if numbers[version.artifact_id] == version.number
    }
    return [(row, newest[row.pk]) for row in artifacts if row.pk in newest]


def newest_of(artifact: Artifact) -> ArtifactVersion:
    """The newest version."""
    return version_of(artifact, artifact.newest)


def version_of(artifact: Artifact, number: int) -> ArtifactVersion:
    """One version.

    Raises:
        NotFound: there is no such version.
    """
    rows = ArtifactVersion.objects.for_workspace(artifact.workspace_id).filter(
        artifact=artifact, number=number
    )
    version = rows.select_related("artifact", "made_by").first()
    if version is None:
        raise NotFound(_("Version %(number)s of this file was not found.") % {"number": number})
    return version


def contents_of(conversation: Conversation) -> list[str]:
    """Under which names the storage keeps what the conversation's files hold."""
    rows = ArtifactVersion.objects.for_workspace(conversation.workspace_id).filter(
        artifact__conversation_id=conversation.pk
    )
    read = FileReading.objects.for_workspace(conversation.workspace_id).filter(
        version__artifact__conversation_id=conversation.pk
    )
    paths = set(rows.order_by().values_list("path", flat=True))
    for pair in read.order_by().values_list("text_path", "picture_path"):
        paths.update(filter(None, pair))
    return list(paths)


def named_contents(files: Iterable[Any], readings: Any, paths: Collection[str]) -> set[str]:
    """Those of the paths that a file or a reading names.

    Args:
        files: of each kind the rows of one workspace, or of all.
        readings: the same of what was read of files.
    """
    named: set[str] = set()
    for rows in files:
        named.update(rows.filter(path__in=paths).order_by().values_list("path", flat=True))
    for field in ("text_path", "picture_path"):
        found = readings.filter(**{f"{field}__in": paths}).order_by()
        named.update(found.values_list(field, flat=True))
    return named


def drop_contents(workspace_id: UUID, paths: list[str]) -> None:
    """Remove contents whose rows are gone; those that another row names stay."""
    files = [kind.objects.for_workspace(workspace_id) for kind in FILES]
    kept = named_contents(files, FileReading.objects.for_workspace(workspace_id), paths)
    storage.drop(path for path in paths if path not in kept)


def _artifacts(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Artifact.objects.for_workspace(workspace_id)
    return rows.filter(conversation_id=conversation_id, is_deleted=False).order_by("pk")


_ARTIFACTS = PreparedRows[Artifact](_artifacts, UUID, UUID)
