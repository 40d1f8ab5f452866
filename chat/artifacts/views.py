"""Contents of files for browsers: links, pictures and frames cannot send the headers that the API wants."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from chat.artifacts import serving
from chat.artifacts.rows import version_of
from chat.models import Artifact, ArtifactVersion, KnowledgeFile
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_safe
@login_required
def download(
    request: WorkspaceRequest, workspace_slug: str, artifact_id: UUID, number: int
) -> HttpResponse:
    """One version, to be saved."""
    return serving.download(request, *_find(request, artifact_id, number))


@require_safe
@login_required
def preview(
    request: WorkspaceRequest, workspace_slug: str, artifact_id: UUID, number: int
) -> HttpResponse:
    """One version, to be looked at within the chat."""
    return serving.preview(request, *_find(request, artifact_id, number))


@require_safe
@login_required
def download_knowledge(
    request: WorkspaceRequest, workspace_slug: str, file_id: UUID
) -> HttpResponse:
    """A file that a bud knows, to be saved."""
    rows = KnowledgeFile.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    file = rows.fetch(file_id)
    return serving.download(request, file, file)


def _find(
    request: WorkspaceRequest, artifact_id: UUID, number: int
) -> tuple[Artifact, ArtifactVersion]:
    rows = Artifact.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    # A superuser enters every workspace, but a conversation is its owner's alone.
    mine = rows.filter(conversation__owner=request.user, is_deleted=False)
    artifact = mine.fetch(artifact_id)
    return artifact, version_of(artifact, number)
