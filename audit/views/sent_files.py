"""What was sent of the log, on pages: where its mail leads, and who signed it off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from audit.filters import EntryFilter, read_filter
from audit.models import SentFile, SignOff
from audit.reviews import making, scheduled_exports, sent_files, sign_offs
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.models import User
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import file_size

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sent_file(request: WorkspaceRequest, workspace_slug: str, sent_id: UUID) -> HttpResponse:
    """Where a file's mail leads: to its entries in the log. There a person signs it off."""
    sent = sent_files.find_sent_file(workspace_of(request).pk, sent_id, actor=request.actor)
    if request.method == "POST":
        with telling_refusals(request, InvalidInput, Conflict):
            sign_offs.sign_off_file(
                sent=sent,
                actor=request.actor,
                note=request.POST.get("note", ""),
                now=timezone.now(),
            )
            message = _("You have signed off “%(name)s”. That is part of the log.")
            messages.success(request, message % {"name": sent.name})
    audit_url = reverse("audit:entries", args=[workspace_slug])
    return redirect(f"{audit_url}?{sent_files.log_query_of(sent)}")


@require_POST
@login_required
def send_file_again(request: WorkspaceRequest, workspace_slug: str, sent_id: UUID) -> HttpResponse:
    """Send what could not be sent."""
    workspace = workspace_of(request, Permission.EXPORT_AUDIT)
    sent = sent_files.find_sent_file(workspace.pk, sent_id, actor=request.actor)
    with telling_refusals(request, InvalidInput, Conflict):
        scheduled_exports.send_again(sent=sent, actor=request.actor)
        if sent.status == SentFile.Status.SENT:
            messages.success(request, scheduled_exports.result_in_words(sent))
        else:
            messages.error(request, sent.fault)
    if sent.schedule_id is None:
        return redirect("audit:schedules", workspace_slug=workspace_slug)
    return redirect(
        "audit:schedule-page", workspace_slug=workspace_slug, schedule_id=sent.schedule_id
    )


def looked_through(request: WorkspaceRequest, wanted: EntryFilter) -> dict[str, Any] | None:
    """Give the sent file whose entries the log's page shows, if it shows just those; to be signed off there."""
    given = request.GET.get("sent")
    if not given:
        return None
    try:
        workspace = workspace_of(request)
        sent = sent_files.find_sent_file(workspace.pk, given, actor=request.actor)
    except NotFound:
        return None
    own = read_filter(QueryDict(sent_files.log_query_of(sent)).dict(), now=timezone.now())
    if own.typed != wanted.typed:
        return None
    signed = sent_files.sign_offs_of(workspace.pk, [sent], reader=request.user)
    audit_url = reverse("audit:entries", args=[workspace.slug])
    return shown_file(sent, signed.get(sent.pk, []), audit_url, request.user)


def shown_file(
    sent: SentFile, signed: Sequence[SignOff], audit_url: str, reader: User
) -> dict[str, Any]:
    """Give a sent file in words."""
    is_sent = sent.status == SentFile.Status.SENT
    return {
        "row": sent,
        "days": making.days_of(sent),
        "to": sent.stored_as or ", ".join(sent.sent_to),
        "size": file_size(sent.size) if sent.size is not None else "",
        "signed": signed,
        "may_sign": is_sent and all(one.signed_by_id != reader.pk for one in signed),
        "may_send_again": not is_sent and not sent.is_trial and sent.schedule_id is not None,
        "log_url": f"{audit_url}?{sent_files.log_query_of(sent)}",
    }
