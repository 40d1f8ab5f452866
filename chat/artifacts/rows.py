"""Reading the rows of a conversation's files."""

from __future__ import annotations

from uuid import UUID

from chat.artifacts import storage
from chat.models import Artifact, ArtifactVersion, Conversation
from workspaces.errors import NotFound


def artifacts_of(conversation: Conversation) -> list[tuple[Artifact, ArtifactVersion]]:
    """The conversation's files with their newest versions, in the order they were made."""
    rows = Artifact.objects.for_workspace(conversation.workspace_id).filter(
        conversation_id=conversation.pk, is_deleted=False
    )
    return with_newest(conversation.workspace_id, list(rows.order_by("pk")))


def with_newest(
    workspace_id: UUID, artifacts: list[Artifact]
) -> list[tuple[Artifact, ArtifactVersion]]:
    """Each of these with its newest version: one query."""
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
    version = rows.select_related("made_by").first()
    if version is None:
        raise NotFound(f"Version {number} of this file was not found.")
    return version


def contents_of(conversation: Conversation) -> list[str]:
    """Under which names the storage keeps what the conversation's files hold."""
    rows = ArtifactVersion.objects.for_workspace(conversation.workspace_id).filter(
        artifact__conversation_id=conversation.pk
    )
    return list(rows.order_by().values_list("path", flat=True).distinct())


def drop_contents(workspace_id: UUID, paths: list[str]) -> None:
    """Remove contents whose rows are gone; those that another row names stay."""
    named = ArtifactVersion.objects.for_workspace(workspace_id).filter(path__in=paths)
    kept = set(named.order_by().values_list("path", flat=True))
    storage.drop(path for path in paths if path not in kept)
