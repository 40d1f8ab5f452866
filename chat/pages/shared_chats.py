"""The page of a shared chat, its files, and the page where people find what they share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chat.artifacts import serving
from chat.files.kinds import FileKind, kind_of
from chat.models import Bud, SharedChat
from chat.pages.read_chat import entries_of
from chat.pages.views import draw_frame
from chat.services.shared_reading import (
    chats_given_to,
    copy_shared,
    find_file,
    find_shared,
    is_open,
)
from chat.services.sharing import link_of, stop_sharing
from chat.shared_document import SharedFile
from workspaces.database.row_security import in_workspace
from workspaces.errors import NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.middleware import actor_for, client_address, signed_in_user
from workspaces.models import Membership, User
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


@csp_update({"frame-src": ["'self'"]})  # type: ignore[arg-type]  # knows no arguments of the address
@require_safe
def shared_chat(request: HttpRequest, token: str) -> HttpResponse:
    """A shared chat, to be read. Somebody who is not signed in comes back after signing in, where that may help."""
    person = signed_in_user(request)
    try:
        shared = find_shared(token, person)
    except NotFound:
        if person is None and is_open(token):
            return _private(redirect_to_login(request.get_full_path()))
        return _gone(request)
    with in_workspace(shared.workspace_id):
        document = shared.text.value
        buds = _buds(shared, person, document.bud)
        context = {
            "shared": shared,
            "document": document,
            "entries": entries_of(document, partial(_address, token)),
            "token": token,
            "buds": buds,
            "is_member": buds is not None,
        }
        response = _private(render(request, "chat/shared_chat.html", context))
    if person is None:
        # Members have a form, whose origin browsers would hide with it, so that it would be refused.
        response["Referrer-Policy"] = "no-referrer"
    return response


@require_POST
@login_required
def copy_shared_chat(request: WorkspaceRequest, token: str) -> HttpResponse:
    """Go on with a shared chat in a chat of one's own."""
    try:
        shared = find_shared(token, request.user)
    except NotFound:
        return _gone(request)
    with in_workspace(shared.workspace_id):
        rows = Bud.objects.for_workspace(shared.workspace_id).visible_to(request.user)
        bud = rows.filter(is_draft=False).fetch(request.POST.get("bud", ""))
        new = copy_shared(
            shared=shared, bud=bud, owner=request.user, actor=_actor_in(request, shared)
        )
    return redirect(
        "chat:conversation", workspace_slug=shared.workspace.slug, conversation_id=new.pk
    )


@require_safe
def shared_file(request: HttpRequest, token: str, artifact_id: UUID, number: int) -> HttpResponse:
    """A file of a shared chat, to be saved."""
    shared = find_shared(token, signed_in_user(request))
    with in_workspace(shared.workspace_id):
        version = find_file(shared, artifact_id, number)
        return serving.download(request, version.artifact, version)


@require_safe
def shared_picture(
    request: HttpRequest, token: str, artifact_id: UUID, number: int
) -> HttpResponse:
    """A picture of a shared chat, drawn anew."""
    shared = find_shared(token, signed_in_user(request))
    with in_workspace(shared.workspace_id):
        version = find_file(shared, artifact_id, number)
        if kind_of(version.content_type, version.artifact.name) is not FileKind.IMAGE:
            raise NotFound
        return serving.preview(request, version.artifact, version)


@require_safe
def shared_diagrams(request: HttpRequest, token: str) -> HttpResponse:
    """The frame in which Mermaid draws, for readers who may be in no workspace."""
    find_shared(token, signed_in_user(request))
    return draw_frame(request)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def my_shared_chats(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What the person shares, newest first and page by page, and what others share with them; a POST stops one."""
    workspace = workspace_of(request, Permission.USE_CHAT)
    rows = SharedChat.objects.for_workspace(workspace).visible_to(request.user)
    mine = rows.filter(owner=request.user).select_related("conversation", "workspace")
    if request.method == "POST":
        stop_sharing(shared=mine.fetch(request.POST.get("shared", "")), actor=request.actor)
        messages.success(request, _("Stopped. The link no longer works."))
        return redirect("chat:shared_chats", workspace_slug=workspace_slug)
    given = chats_given_to(request.user, workspace)
    page = page_in_address(mine, request.GET, by="-created_at")
    context: dict[str, Any] = {
        "rows": [(row, link_of(row)) for row in page.rows],
        "given": [(row, link_of(row)) for row in given],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    return render(request, "chat/shared_chats.html", context)


def _private(response: HttpResponse) -> HttpResponse:
    """For no search engine and no shared cache."""
    response["X-Robots-Tag"] = "noindex, nofollow"
    response["Cache-Control"] = "private, no-store"
    return response


def _gone(request: HttpRequest) -> HttpResponse:
    """The same page for all that cannot be read."""
    return _private(render(request, "chat/shared_gone.html", status=404))


def _actor_in(request: WorkspaceRequest, shared: SharedChat) -> Actor:
    """Who acts in the workspace of the shared chat, which may be another than that of the session."""
    return actor_for(
        request.user,
        shared.workspace,
        source=request.actor.source,
        ip_address=client_address(request),
        request_id=request.request_id,
    )


def _buds(shared: SharedChat, person: User | None, first: str) -> list[Bud] | None:
    """The buds with which the person may go on, the one with that name first; None: they are no member."""
    if person is None:
        return None
    members = Membership.objects.for_workspace(shared.workspace_id)
    if not members.filter(user=person).exists():
        return None
    rows = Bud.objects.for_workspace(shared.workspace_id).usable_by(person.pk)
    buds = list(rows.filter(is_archived=False, is_draft=False).only("name").order_by("name", "pk"))
    return sorted(buds, key=lambda bud: bud.name != first)


def _address(token: str, file: SharedFile, *, is_picture: bool) -> str:
    name = "chat:shared_picture" if is_picture else "chat:shared_file"
    return reverse(name, args=[token, file.artifact_id, file.number])
