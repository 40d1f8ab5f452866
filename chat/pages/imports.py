"""The page where people import chats, see how far that is, and take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from chat.importing.reading import MOST_CHATS, MOST_UNPACKED_BYTES
from chat.importing.values import MOST_MESSAGES
from chat.models import Bud, ChatImport
from chat.services.imports import chats_of, remove_import, restore_import, start_import
from chat.values import ImportStatus
from workspaces.errors import Conflict, DomainError, InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

MOST_ON_PAGE: Final = 20


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def imports(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the imports; a POST begins an import. An htmx request gets the list alone."""
    workspace, person = workspace_of(request, Permission.USE_CHAT), request.user
    faults: dict[str, list[str]] = {}
    if request.method == "POST":
        try:
            _start(request, workspace)
        except DomainError as error:
            fields = error.fields if isinstance(error, InvalidInput) else {}
            # Without the names of fields: the words say which of the two is meant.
            faults = {"": [text for some in fields.values() for text in some] or [error.message]}
        else:
            messages.success(request, _("Trellis reads your file now. You can leave this page."))
            return redirect("chat:imports", workspace_slug=workspace_slug)
    rows = ChatImport.objects.for_workspace(workspace).filter(owner=person).select_related("bud")
    page = page_in_address(rows, request.GET, by="-id", most=MOST_ON_PAGE)
    context: dict[str, Any] = {
        "rows": [_shown(row) for row in page.rows],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    if getattr(request, "htmx", False):
        return render(request, "chat/_imports.html", context)
    context |= {
        "buds": _buds(request, workspace),
        "faults": faults,
        "most_mb": whole(settings.TRELLIS.artifact_max_bytes // 1024**2),
        "most_copy_mb": whole(settings.TRELLIS.import_max_bytes // 1024**2),
        "most_unpacked_mb": whole(MOST_UNPACKED_BYTES // 1024**2),
        "most_chats": whole(MOST_CHATS),
        "most_messages": whole(MOST_MESSAGES),
        "deleted_days": settings.TRELLIS.deleted_conversation_days,
    }
    return render(request, "chat/imports.html", context, status=422 if faults else 200)


@require_http_methods(["POST"])
@login_required
def change_import(
    request: WorkspaceRequest, workspace_slug: str, import_id: UUID, verb: str
) -> HttpResponse:
    """Remove the chats of an import as one, or bring them back."""
    workspace = workspace_of(request)
    rows = ChatImport.objects.for_workspace(workspace).filter(owner=request.user)
    row = rows.fetch(import_id)
    with telling_refusals(request, Conflict):
        if verb == "remove":
            count = remove_import(row=row, actor=request.actor)
            message = ngettext(
                "%(count)s chat was removed.", "%(count)s chats were removed.", count
            )
        elif verb == "restore":
            count = restore_import(row=row, actor=request.actor)
            message = ngettext("%(count)s chat is back.", "%(count)s chats are back.", count)
        else:
            raise NotFound
        messages.success(request, message % {"count": whole(count)})
    return redirect("chat:imports", workspace_slug=workspace_slug)


def _start(request: WorkspaceRequest, workspace: Workspace) -> None:
    file = request.FILES.get("file")
    bud = _buds(request, workspace).find(request.POST.get("bud_id", ""))
    fields: dict[str, list[str]] = {}
    if file is None:
        fields["file"] = [_("Choose a file.")]
    if bud is None:
        fields["bud_id"] = [_("Choose a bud.")]
    if file is None or bud is None:
        raise InvalidInput(fields=fields)
    start_import(
        workspace=workspace,
        owner=request.user,
        bud=bud,
        name=file.name or "",
        file=file,
        actor=request.actor,
    )


def _buds(request: WorkspaceRequest, workspace: Workspace) -> Any:
    rows = Bud.objects.for_workspace(workspace).visible_to(request.user)
    return rows.filter(is_archived=False, is_draft=False).order_by("name", "pk")


def _shown(row: ChatImport) -> dict[str, Any]:
    is_open = row.status in (ImportStatus.QUEUED, ImportStatus.RUNNING)
    came = row.imported and not is_open and row.status != ImportStatus.REMOVED
    return {
        "row": row,
        "is_open": is_open,
        "left": chats_of(row).count() if came else 0,
        "can_restore": row.status == ImportStatus.REMOVED
        and bool(settings.TRELLIS.deleted_conversation_days),
    }
