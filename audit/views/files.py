"""The log and its reports as files, for pages and the REST interface alike. That one was taken is recorded first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.utils import timezone

from audit import exports, reports
from audit.exports import pdf
from audit.reviews.schedules import may_export
from workspaces.errors import PermissionDenied
from workspaces.models import ApiToken, User, Workspace

if TYPE_CHECKING:
    from datetime import datetime, tzinfo
    from uuid import UUID

    from django.http import HttpRequest

    from audit.filters import EntryFilter
    from workspaces.actors import Actor


def give_log(
    request: HttpRequest,
    workspace: Workspace,
    wanted: EntryFilter,
    *,
    extension: str,
    actor: Actor,
    now: datetime,
) -> StreamingHttpResponse:
    """Give the filtered log, as a file of the kind that the extension names.

    Raises:
        PermissionDenied: the actor may not export.
        AuditUnavailable: it could not be recorded; then nothing is given.
    """
    kind = exports.FORMATS[extension]
    rows = reports.entries_of(workspace.pk, actor=actor)
    exports.record_export(
        actor=actor, workspace_id=workspace.pk, format_name=extension, wanted=wanted
    )
    found = reports.matching(rows, wanted, actor=actor).filter(created_at__lte=now)
    parts = found, exports.removals_since(workspace.pk, now)
    # A synchronous iterator under an asynchronous server would be read whole before the first byte.
    is_async = isinstance(request, ASGIRequest)
    stream = kind.stream_async if is_async else kind.stream
    pieces = stream(*parts, check=partial(expect_right, actor, workspace.pk))
    response = StreamingHttpResponse(pieces, content_type=kind.media_type)
    name = f"trellis-audit-{workspace.slug}-{now:%Y%m%dT%H%M%SZ}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def expect_right(actor: Actor, workspace_id: UUID) -> None:
    """A file may take hours. Whoever may not export any more gets no further entries, and their download fails."""
    user = User.objects.filter(pk=actor.user_id).first() if actor.user_id else None
    workspace = Workspace.objects.filter(pk=workspace_id).first()
    if user is None or workspace is None or may_export(user, workspace) is None:
        raise PermissionDenied
    if actor.token_id is not None and actor.sign_in == "token":
        tokens = ApiToken.objects.across_workspaces().filter(expires_at__gt=timezone.now())
        if not tokens.filter(pk=actor.token_id).exists():
            raise PermissionDenied


def give_report(
    workspace: Workspace,
    wanted: EntryFilter,
    *,
    by: str,
    actor: Actor,
    now: datetime,
    zone: tzinfo,
) -> HttpResponse:
    """Give the report as a PDF file.

    Args:
        zone: of whoever asks.

    Raises:
        PermissionDenied: the actor may not export.
        AuditUnavailable: it could not be recorded; then nothing is given.
    """
    exports.record_export(
        actor=actor, workspace_id=workspace.pk, format_name=exports.PDF, wanted=wanted, report=by
    )
    body = exports.report_pdf(workspace, wanted, actor=actor, now=now, by=by, zone=zone)
    name = f"trellis-report-{workspace.slug}-{now:%Y%m%dT%H%M%SZ}.pdf"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=pdf.MEDIA_TYPE, headers=headers)
