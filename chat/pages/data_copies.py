"""The page where people ask for a copy of their data, see how far it is, and download it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from chat.models import OPEN_COPIES, DataCopy
from chat.services.copy_archive import part_bytes
from chat.services.copy_downloads import give_part
from chat.services.data_copies import cancel_copy, erase_copy, request_copy
from chat.values import CopyStatus
from workspaces.errors import Conflict, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MOST_ON_PAGE: Final = 20


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def data_copies(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the copies; a POST asks for one. An htmx request gets the list alone."""
    workspace, person = workspace_of(request, Permission.USE_CHAT), request.user
    if request.method == "POST":
        with telling_refusals(request, Conflict):
            request_copy(
                workspace=workspace,
                owner=person,
                with_files="without_files" not in request.POST,
                actor=request.actor,
            )
            messages.success(request, _("Trellis makes your copy now. You can leave this page."))
        return redirect("chat:data_copies", workspace_slug=workspace_slug)
    rows = DataCopy.objects.for_workspace(workspace).visible_to(person).filter(owner=person)
    page = page_in_address(rows.prefetch_related("parts"), request.GET, by="-id", most=MOST_ON_PAGE)
    context: dict[str, Any] = {
        "rows": [_shown(row) for row in page.rows],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    if getattr(request, "htmx", False):
        return render(request, "chat/_data_copies.html", context)
    context |= {
        "days": settings.TRELLIS.data_copy_days,
        "part_mb": whole(part_bytes() // 1024**2),
    }
    return render(request, "chat/data_copies.html", context)


@require_http_methods(["POST"])
@login_required
def change_data_copy(
    request: WorkspaceRequest, workspace_slug: str, copy_id: UUID, verb: str
) -> HttpResponse:
    """Stop making a copy, or erase one that is ready."""
    row = _own(request).fetch(copy_id)
    with telling_refusals(request, Conflict):
        if verb == "cancel":
            cancel_copy(row=row, actor=request.actor)
            message = _("Cancelled. Nothing is kept of that copy.")
        elif verb == "erase":
            erase_copy(row=row, actor=request.actor)
            message = _("The copy is erased.")
        else:
            raise NotFound
        messages.success(request, message)
    return redirect("chat:data_copies", workspace_slug=workspace_slug)


@require_safe
@login_required
def download_data_copy(
    request: WorkspaceRequest, workspace_slug: str, copy_id: UUID, number: int
) -> HttpResponseBase:
    """One part, to be saved."""
    return give_part(request, _own(request).fetch(copy_id), number, actor=request.actor)


def _own(request: WorkspaceRequest) -> Any:
    rows = DataCopy.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    # A superuser enters every workspace, but a copy is its person's alone.
    return rows.filter(owner=request.user)


def _shown(row: DataCopy) -> dict[str, Any]:
    return {
        "row": row,
        "is_open": row.status in OPEN_COPIES,
        "parts": list(row.parts.all()) if row.status == CopyStatus.READY else [],
    }
