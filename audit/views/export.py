"""The filtered log as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import login_required
from django.http import Http404, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET

from audit import exports, reports
from audit.filters import read_filter
from audit.views.files import give_log
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def export(request: WorkspaceRequest, workspace_slug: str, extension: str) -> HttpResponseBase:
    """The filtered log as a file; that it was taken is recorded first."""
    workspace = workspace_of(request)
    if extension not in exports.FORMATS:
        raise Http404
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    reports.entries_of(workspace.pk, actor=request.actor)  # whoever may not see it learns nothing
    if wanted.errors:  # without the wrong condition the file would hold more than was asked for
        return HttpResponseBadRequest(" ".join(wanted.errors), content_type="text/plain")
    return give_log(request, workspace, wanted, extension=extension, actor=request.actor, now=now)
