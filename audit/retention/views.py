"""The page of the log's settings: how long it is kept, what is masked, holds, erasure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from audit import retention
from audit.models import LegalHold
from audit.retention.forms import ErasureForm, HoldForm, PolicyForm, policy_in_words
from audit.retention.periods import everything_kept
from audit.retention.removing import PERIODS
from audit.views.header import header_of
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import put_faults, telling_refusals, workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.roles import Permission, has_permission, require
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def settings(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the settings; a POST stores them."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    policy = retention.policy_row(workspace.pk)
    hold(request, policy)
    form = PolicyForm(request.POST if request.method == "POST" else None, policy=policy)
    if request.method == "POST" and form.is_valid():
        change = form.change()
        if "is_agreed" not in request.POST:
            goes = retention.what_more_would_go(workspace.pk, change, now=timezone.now())
            if goes is not None:
                return _ask(request, goes)
        try:
            retention.change_policy(workspace_id=workspace.pk, change=change, actor=request.actor)
        except InvalidInput as error:
            put_faults(form, error)
        else:
            messages.success(request, _saved(workspace.pk, change))
            return redirect("audit:settings", workspace_slug)
    return _page(request, policy_form=form)


def _saved(workspace_id: UUID, change: retention.PolicyChange) -> str:
    if all(getattr(change, name) is None for name in PERIODS):
        return _("Saved.")
    if retention.active_hold(workspace_id) is not None:
        return _("Saved. Nothing is removed while the legal hold stands.")
    return _("Saved. What is kept too long is deleted within the hour.")


def _ask(request: WorkspaceRequest, goes: retention.RemovalCounts) -> HttpResponse:
    """Say how much the settings remove, before they are stored."""
    require(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_of(request).pk)
    hidden = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    context = {
        "section": "audit",
        "settings_url": request.path,
        "goes": goes,
        "hidden": hidden,
    }
    return render(request, "audit/confirm_removal.html", context)


@require_POST
@login_required
def place_hold(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Forbid removal."""
    form = HoldForm(request.POST)
    if form.is_valid():
        try:
            retention.place_hold(
                workspace_id=workspace_of(request).pk,
                reason=form.cleaned_data["reason"],
                actor=request.actor,
            )
        except InvalidInput as error:
            put_faults(form, error)
        except Conflict as error:
            messages.error(request, error.message)
            return redirect("audit:settings", workspace_slug)
        else:
            messages.success(request, _("From now on nothing of this log is removed or erased."))
            return redirect("audit:settings", workspace_slug)
    return _page(request, hold_form=form)


@require_POST
@login_required
def release_hold(request: WorkspaceRequest, workspace_slug: str, hold_id: UUID) -> HttpResponse:
    """Allow removal again."""
    workspace = workspace_of(request)
    with telling_refusals(request, Conflict):
        retention.release_hold(workspace_id=workspace.pk, hold_id=hold_id, actor=request.actor)
        messages.success(request, _("The hold is released; the settings apply again."))
    return redirect("audit:settings", workspace_slug)


@require_POST
@login_required
def erase(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Erase what one person's calls show."""
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    form = ErasureForm(request.POST)
    if form.is_valid():
        try:
            person_id = retention.person_of(workspace.pk, form.cleaned_data["email"])
            done = retention.erase_bodies(
                workspace_id=workspace.pk,
                person_id=person_id,
                reason=form.cleaned_data["reason"],
                with_chats=form.cleaned_data["with_chats"],
                actor=request.actor,
            )
        except InvalidInput as error:
            put_faults(form, error)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            text = (
                _("Erased in %(count)s entries; the entries stay.")
                if done.is_done
                else _(
                    "Erased in %(count)s entries; the entries stay. The rest follows in the background."
                )
            )
            messages.success(request, text % {"count": whole(done.erased)})
            if form.cleaned_data["with_chats"]:
                messages.success(request, _chats_in_words(done.chats))
                if done.buds:
                    messages.success(request, _buds_in_words(done.buds))
            return redirect("audit:settings", workspace_slug)
    return _page(request, erasure_form=form)


def _buds_in_words(count: int) -> str:
    text = ngettext(
        "%(count)s bud of theirs, which nobody else could use, is erased.",
        "%(count)s buds of theirs, which nobody else could use, are erased.",
        count,
    )
    return text % {"count": whole(count)}


def _chats_in_words(count: int) -> str:
    if not count:
        return _("There are no chats of theirs.")
    text = ngettext(
        "%(count)s chat is out of sight. It stays in the database until the hourly job has erased it.",
        "%(count)s chats are out of sight. They stay in the database until the hourly job has erased them.",
        count,
    )
    return text % {"count": whole(count)}


def _page(request: WorkspaceRequest, **forms: Form) -> HttpResponse:
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    can_manage = has_permission(
        request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
    )
    policy = retention.policy_row(workspace.pk)
    holds = page_in_address(
        LegalHold.objects.for_workspace(workspace.pk), request.GET, by="-placed_at"
    )
    settings_url = reverse("audit:settings", args=[workspace.slug])
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "settings",
        **header_of(request),
        "settings_url": settings_url,
        "can_manage": can_manage,
        "policy_form": forms.get("policy_form") or PolicyForm(policy=policy),
        "policy": policy_in_words(policy),
        "hold_form": forms.get("hold_form") or HoldForm(),
        "erasure_form": forms.get("erasure_form") or ErasureForm(),
        "holds": holds.rows,
        "ways": ways_from(holds, request.GET, path=settings_url, anchor="#holds-heading"),
        "address_faults": page_faults(holds),
        "hold": retention.active_hold(workspace.pk),
        "everything_kept": everything_kept(),
        "next_removal": retention.what_would_go(workspace.pk, now=timezone.now()),
    }
    return render(
        request, "audit/settings.html", context, status=422 if request.method == "POST" else 200
    )
