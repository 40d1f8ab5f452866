"""The pages where a workspace's admin sees what models cost this month, and sets spending limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.pages.spending_form import MemberLimitForm, SpendingForm
from chat.providers.spending_months import (
    WorkspaceMonth,
    month_of_person,
    month_of_workspace,
    most_spending,
    own_limits,
    standings_of,
)
from chat.providers.spending_words import limit_in_words
from chat.services.spending_limits import (
    remove_member_limit,
    set_limits,
    set_member_limit,
)
from workspaces.errors import InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import Membership
from workspaces.pages.parts import put_faults, workspace_of
from workspaces.pages.seen_values import hold, saves_one_at_a_time
from workspaces.roles import Permission
from workspaces.words.formats import time_zones
from workspaces.words.text_values import unknown_filters

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MEMBERS_ON_PAGE: Final = 50
MOST_SHOWN: Final = 5
"""People who use most."""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def spending(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The month of the workspace and of its people; with POST, set the limits."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    month = month_of_workspace(workspace.pk)
    hold(request, month.policy)
    form = SpendingForm(request.POST or None, policy=month.policy, time_zone=request.user.time_zone)
    if request.method == "POST" and form.is_valid():
        try:
            set_limits(workspace=workspace, draft=form.draft(), actor=request.actor)
        except InvalidInput as error:
            put_faults(form, error)
        else:
            messages.success(request, _("Saved. The limits hold from now on."))
            return redirect("chat:spending", workspace_slug=workspace_slug)
    context: dict[str, Any] = {
        "section": "people",
        "tab": "spending",
        "month": month,
        "form": form,
        "time_zones": time_zones(),
        "most": most_spending(workspace.pk, month.month, MOST_SHOWN),
        **_members(request, month),
    }
    return render(request, "chat/spending.html", context, status=422 if form.errors else 200)


def _members(request: WorkspaceRequest, month: WorkspaceMonth) -> dict[str, Any]:
    """A page of members, each with their month and the limit that holds."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    query = request.GET.get("q", "").replace("\x00", "").strip()[:100]
    rows = Membership.objects.also_suspended(workspace).select_related("user")
    if query:
        rows = rows.filter(Q(user__email__icontains=query) | Q(user__name__icontains=query))
    page = page_in_address(rows, request.GET, by="user__email", most=MEMBERS_ON_PAGE)
    people = [one.user_id for one in page.rows]
    standings = standings_of(workspace.pk, people, month.policy, month.month)
    own = own_limits(workspace.pk, people)
    return {
        "query": query,
        "fault": next(iter(unknown_filters(request.GET, {"q", "after"})), ""),
        "members": [(one, standings[one.user_id], one.user_id in own) for one in page.rows],
        "ways": ways_from(page, request.GET, anchor="#members-heading"),
        "address_faults": page_faults(page),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def member_spending(
    request: WorkspaceRequest, workspace_slug: str, membership_id: UUID
) -> HttpResponse:
    """The limit of one member."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    rows = Membership.objects.also_suspended(workspace).select_related("user")
    person = rows.fetch(membership_id).user
    own = own_limits(workspace.pk, [person.pk]).get(person.pk)
    form = MemberLimitForm(request.POST or None, own=own)
    if request.method == "POST" and form.is_valid():
        limit = form.limit()
        try:
            if limit is None:
                remove_member_limit(workspace=workspace, person=person, actor=request.actor)
            else:
                set_member_limit(
                    workspace=workspace, person=person, limit=limit, actor=request.actor
                )
        except InvalidInput as error:
            put_faults(form, error)
        else:
            saved = _("The spending limit of %(name)s is saved, and holds from now on.")
            messages.success(request, saved % {"name": person.display_name})
            return redirect("chat:spending", workspace_slug=workspace_slug)
    month = month_of_person(workspace.pk, person.pk)
    context: dict[str, Any] = {
        "section": "people",
        "person": person,
        "month": month,
        "usual": limit_in_words(month.usual),
        "form": form,
    }
    return render(request, "chat/member_spending.html", context, status=422 if form.errors else 200)
