"""The page of requests: members ask, administrators decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.errors import DomainError, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import AccessRequest, RequestKind, RequestStatus
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.people.access_requests import (
    LONGEST_NOTE,
    ask,
    decide_request,
    may_decide,
    path_to_set_up,
    requests_for,
    withdraw_request,
)
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_OPEN_AFTER = "open_after"
_DECIDED_AFTER = "decided_after"


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def requests(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What waits, what was decided, and a form to ask; `?kind=` and `?name=` fill it in."""
    workspace = workspace_of(request, Permission.USE_CHAT)
    given = request.POST if request.method == "POST" else request.GET
    typed = {
        name: given.get(name, "").replace("\x00", "")[:longest]
        for name, longest in (("kind", 20), ("name", 300), ("reason", 2000))
    }
    faults: dict[str, list[str]] = {}
    if request.method == "POST":
        try:
            if typed["kind"] not in RequestKind.values:
                raise InvalidInput(fields={"kind": [_("Choose what you need.")]})
            ask(
                workspace=workspace,
                kind=RequestKind(typed["kind"]),
                name=typed["name"],
                reason=typed["reason"],
                actor=request.actor,
            )
        except DomainError as error:
            is_of_fields = isinstance(error, InvalidInput) and error.fields
            faults = error.fields if is_of_fields else {"": [error.message]}  # type: ignore[attr-defined]
        else:
            messages.success(request, _("Your request waits for an administrator."))
            return redirect("workspaces:requests", workspace_slug=workspace_slug)
    rows = requests_for(workspace, request.actor).select_related("requester", "decided_by")
    open_ones = page_in_address(
        rows.filter(status=RequestStatus.OPEN).select_related("workspace"),
        request.GET,
        _OPEN_AFTER,
        by="created_at",
    )
    decided = page_in_address(
        rows.exclude(status=RequestStatus.OPEN), request.GET, _DECIDED_AFTER, by="-decided_at"
    )
    context: dict[str, Any] = {
        **typed,
        "section": "people",
        "faults": faults,
        "kinds": RequestKind.choices,
        "can_decide": may_decide(request.actor, workspace),
        "can_manage_members": has_permission(
            request.actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk
        ),
        "longest_note": LONGEST_NOTE,
        "open": [(row, path_to_set_up(row)) for row in open_ones.rows],
        "open_ways": ways_from(open_ones, request.GET, _OPEN_AFTER, anchor="#open-heading"),
        "decided": decided.rows,
        "decided_ways": ways_from(decided, request.GET, _DECIDED_AFTER, anchor="#decided-heading"),
        "address_faults": page_faults(open_ones, decided),
    }
    return render(request, "workspaces/requests.html", context, status=422 if faults else 200)


@require_POST
@login_required
def change_request(
    request: WorkspaceRequest, workspace_slug: str, request_id: UUID, verb: str
) -> HttpResponse:
    """What a button of a request says."""
    workspace = workspace_of(request, Permission.USE_CHAT)
    row: AccessRequest = requests_for(workspace, request.actor).fetch(request_id)
    with telling_refusals(request, DomainError):
        if verb in {"grant", "decline"}:
            note = request.POST.get("note", "").replace("\x00", "")
            decide_request(request=row, is_granted=verb == "grant", note=note, actor=request.actor)
            message = _("%(name)s was told of your answer.") % {"name": row.requester.display_name}
        elif verb == "withdraw":
            withdraw_request(request=row, actor=request.actor)
            message = _("Your request is withdrawn.")
        else:
            raise Http404
        messages.success(request, message)
    return redirect("workspaces:requests", workspace_slug=workspace_slug)
