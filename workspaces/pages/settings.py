"""A person's own settings: profile, appearance, shortcuts, and where they are signed in. The other sections are pages of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from workspaces.errors import Conflict, InvalidInput
from workspaces.lists.row_pages import RowPage, page_faults, page_in_address, ways_from
from workspaces.models import Theme, WorkspaceSession
from workspaces.pages.forms import FormatsForm, ProfileForm
from workspaces.pages.parts import id_of, picture_response
from workspaces.people.browser_sessions import (
    SESSION_ORDER,
    device,
    end_other_sessions,
    end_own_session,
    sessions_of,
)
from workspaces.people.entering import listed_workspaces
from workspaces.people.pictures import MOST_BYTES, keep_picture, own_picture, remove_picture
from workspaces.people.profiles import change_profile
from workspaces.people.services import leave_workspace
from workspaces.roles import Permission, has_permission
from workspaces.words.text_values import unknown_filters
from workspaces.workspace_choices import entrances_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def profile(request: WorkspaceRequest) -> HttpResponse:
    """What others call the person, and how they look."""
    user = request.user
    form = ProfileForm(request.POST or None, initial={"name": user.name})
    if request.method == "POST" and form.is_valid():
        change_profile(user=user, name=form.cleaned_data["name"])
        messages.success(request, _("Saved."))
        return redirect("workspaces:profile")
    return _profile_page(request, form, is_refused=request.method == "POST")


def _profile_page(
    request: WorkspaceRequest, form: ProfileForm, *, fault: str = "", is_refused: bool = False
) -> HttpResponse:
    context = {
        "section": "account",
        "form": form,
        "picture_fault": fault,
        "most_bytes": MOST_BYTES,
    }
    return render(
        request, "workspaces/settings_profile.html", context, status=422 if is_refused else 200
    )


@require_POST
@login_required
def leave(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The person is no member of this workspace any more."""
    workspace = request.workspace
    if workspace is None:
        raise Http404
    try:
        leave_workspace(workspace=workspace, actor=request.actor)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("workspaces:profile")
    messages.success(request, _("You have left %(name)s.") % {"name": workspace.name})
    return redirect("workspaces:index")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def picture(request: WorkspaceRequest) -> HttpResponse:
    """The person's own picture; sent, it is another one, or none any more."""
    user = request.user
    if request.method != "POST":
        return picture_response(own_picture(user))
    try:
        if "remove" in request.POST:
            remove_picture(user=user)
        else:
            keep_picture(user=user, content=_chosen_picture(request))
    except InvalidInput as error:
        form = ProfileForm(initial={"name": user.name})
        return _profile_page(request, form, fault=error.message, is_refused=True)
    messages.success(request, _("Saved."))
    return redirect("workspaces:profile")


def _chosen_picture(request: WorkspaceRequest) -> bytes:
    upload = request.FILES.get("picture")
    if upload is None:
        raise InvalidInput(fields={"picture": [_("Choose a picture first.")]})
    return bytes(upload.read(MOST_BYTES + 1))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def appearance(request: WorkspaceRequest) -> HttpResponse:
    """In which colours the person sees Trellis. Menus send their choice here too, and go back to `next`."""
    user = request.user
    fault = ""
    if request.method == "POST":
        try:
            change_profile(user=user, theme=request.POST.get("theme", ""))
        except InvalidInput as error:
            fault = error.fields["theme"][0]
        else:
            if request.GET.get("format") == "json":
                return JsonResponse({"theme": user.theme})
            way_back = request.POST.get("next", "")
            if way_back.startswith("/") and url_has_allowed_host_and_scheme(way_back, None):
                return HttpResponseRedirect(way_back)
            messages.success(request, _("Saved."))
            return redirect("workspaces:appearance")
    context = {
        "section": "account",
        "themes": Theme.choices,
        "chosen": user.theme or Theme.SYSTEM,
        "fault": fault,
    }
    return render(
        request, "workspaces/settings_appearance.html", context, status=422 if fault else 200
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def formats(request: WorkspaceRequest) -> HttpResponse:
    """How moments and numbers are written for the person."""
    user = request.user
    chosen = {name: getattr(user, name) for name in FormatsForm.base_fields}
    form = FormatsForm(request.POST or None, initial=chosen)
    is_refused = request.method == "POST"
    if is_refused and form.is_valid():
        change_profile(user=user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return redirect("workspaces:formats")
    context = {"section": "account", "form": form, "now": timezone.now()}
    return render(
        request, "workspaces/settings_formats.html", context, status=422 if is_refused else 200
    )


@require_safe
@login_required
def shortcuts(request: WorkspaceRequest) -> HttpResponse:
    """Which keys do what, on each page that the person has; the web app holds the list (`src/shortcuts/list.ts`)."""
    actor, workspace = request.actor, request.workspace
    places = ["chat", "pages"]
    if workspace and has_permission(actor, Permission.VIEW_AUDIT, workspace_id=workspace.pk):
        places.append("audit")
    if request.user.is_staff:
        places.append("admin")
    context = {"section": "account", "places": " ".join(places)}
    return render(request, "workspaces/settings_shortcuts.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sessions(request: WorkspaceRequest) -> HttpResponse:
    """Where the person is signed in, page by page; sign out of one, or of all others in all workspaces."""
    if request.method == "POST":
        messages.success(request, _sign_out(request))
        return redirect("workspaces:sessions")
    current, workspace = request.session.session_key, request.workspace
    page: RowPage[WorkspaceSession] = RowPage(
        rows=[]
    )  # a browser is listed where it used a workspace
    if workspace is not None:
        rows = sessions_of(request.user.pk, workspace)
        page = page_in_address(rows, request.GET, by=SESSION_ORDER)
    context: dict[str, Any] = {
        "section": "account",
        "sessions": [(row, device(row.user_agent), row.session_id == current) for row in page.rows],
        "ways": ways_from(page, request.GET),
        "faults": page_faults(page),
    }
    return render(request, "workspaces/settings_sessions.html", context)


def _sign_out(request: WorkspaceRequest) -> str:
    """Sign the person out of the browser that they named, or of all others; gives what to tell them."""
    actor = request.actor
    if chosen := request.POST.get("session"):
        if request.workspace is None:
            raise Http404
        current = request.session.session_key
        number = end_own_session(session_id=id_of(chosen), session_key=current, actor=actor)
        message = _("There was nothing to sign out of.")
    else:
        number = end_other_sessions(user=request.user, session=request.session, actor=actor)
        message = _("Signed out everywhere else.")
    if not number:
        return message
    return ngettext(
        "Signed out of %(number)s other browser.",
        "Signed out of %(number)s other browsers.",
        number,
    ) % {"number": number}


@require_safe
@login_required
def all_workspaces(request: WorkspaceRequest) -> HttpResponse:
    """Every workspace of the person, page by page; menus show the first of them."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    rows = listed_workspaces(request.user)
    page = page_in_address(
        rows.filter(name__icontains=query) if query else rows, request.GET, by="name"
    )
    context = {
        "section": "account",
        "query": query,
        "fault": next(iter(unknown_filters(request.GET, {"q", "after"})), ""),
        "entrances": entrances_of(request.user, page.rows),
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
    }
    return render(request, "workspaces/all.html", context)
