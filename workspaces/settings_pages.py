"""A person's own settings: their profile, and where they are signed in. The other sections are pages of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from workspaces.forms import ProfileForm
from workspaces.models import Membership
from workspaces.page_parts import id_of
from workspaces.visits import device, end_sessions, sessions_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MOST_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def profile(request: WorkspaceRequest) -> HttpResponse:
    """What others call the person."""
    user = request.user
    form = ProfileForm(request.POST or None, initial={"name": user.name})
    if request.method == "POST" and form.is_valid():
        user.name = form.cleaned_data["name"].strip()
        user.save(update_fields=["name", "updated_at"])
        messages.success(request, _("Saved."))
        return redirect("workspaces:profile")
    is_refused = request.method == "POST"
    context = {"section": "account", "tab": "profile", "form": form}
    return render(
        request, "workspaces/settings_profile.html", context, status=422 if is_refused else 200
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sessions(request: WorkspaceRequest) -> HttpResponse:
    """Where the person is signed in; sign out of one, or of all others."""
    if request.workspace is None:
        return redirect("workspaces:index")
    rows = Membership.objects.for_workspace(request.workspace).filter(user=request.user)
    membership = rows.select_related("workspace").first()
    found = list(sessions_of(request.user.pk, request.workspace)[:MOST_SHOWN])
    current = request.session.session_key
    if request.method == "POST" and membership is not None:
        chosen = request.POST.get("session")
        others = {row.pk for row in found if row.session_id != current}
        if chosen:
            others &= {id_of(chosen)}
        number = end_sessions(membership=membership, session_ids=others, actor=request.actor)
        told = _("Signed out.") if number else _("There was nothing to sign out of.")
        messages.success(request, told)
        return redirect("workspaces:sessions")
    context: dict[str, Any] = {
        "section": "account",
        "tab": "sessions",
        "sessions": [(row, device(row.user_agent), row.session_id == current) for row in found],
        "has_others": any(row.session_id != current for row in found),
    }
    return render(request, "workspaces/settings_sessions.html", context)
