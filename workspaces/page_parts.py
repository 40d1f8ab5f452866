"""What pages about a workspace's people share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.http import Http404

from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


def workspace_of(request: WorkspaceRequest, permission: Permission) -> Workspace:
    """The workspace of the page.

    Raises:
        Http404: the page is of none.
        PermissionDenied: the person may not do this here.
    """
    if request.workspace is None:
        raise Http404
    require(request.actor, permission, workspace_id=request.workspace.pk)
    return request.workspace


def id_of(text: str) -> UUID:
    """An id that a form has sent. Raises Http404 if it is none."""
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error
