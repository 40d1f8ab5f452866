"""What the pages of the log share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.utils.translation import gettext

from audit.actions import sentence_of, title_of
from audit.models import AuditEntry

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


def workspace_of(request: WorkspaceRequest) -> Workspace:
    """Give the workspace of the address; another's is a 404."""
    if request.workspace is None:
        raise Http404
    return request.workspace


def described(entry: AuditEntry) -> AuditEntry:
    """Add the words for people, which the templates read."""
    described: Any = entry
    described.sentence = gettext(sentence_of(entry.action))
    described.action_label = gettext(title_of(entry.action))
    return entry
