"""The filtered log as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpResponseBadRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET

from audit import exports, reports
from audit.filters import read_filter
from audit.views.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def export(request: WorkspaceRequest, workspace_slug: str, extension: str) -> HttpResponseBase:
    """The filtered log as a file; that it was taken is recorded first."""
    workspace = workspace_of(request)
    if extension not in exports.FORMATS:
        raise Http404
    kind = exports.FORMATS[extension]
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    if wanted.errors:  # without the wrong condition the file would hold more than was asked for
        return HttpResponseBadRequest(" ".join(wanted.errors), content_type="text/plain")
    exports.record_export(
        actor=request.actor, workspace_id=workspace.pk, format_name=extension, wanted=wanted
    )
    found = reports.matching(rows, wanted, actor=request.actor).filter(created_at__lte=now)
    # A synchronous iterator under an asynchronous server would be read whole before the first byte.
    is_async = isinstance(request, ASGIRequest)
    pieces = kind.stream_async(found) if is_async else kind.stream(found)
    response = StreamingHttpResponse(pieces, content_type=kind.media_type)
    name = f"trellis-audit-{workspace_slug}-{now:%Y%m%dT%H%M%SZ}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
