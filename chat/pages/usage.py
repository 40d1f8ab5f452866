"""The page where people see what their own questions used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chat.providers.spending_months import month_of_person
from chat.services.usage import PERIODS, usage_of
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_safe
@login_required
def usage(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the last week, or the last month."""
    workspace = workspace_of(request, Permission.USE_CHAT)
    wanted = request.GET.get("days", "")
    days = next((one for one in PERIODS if str(one) == wanted), PERIODS[0])
    context: dict[str, Any] = {
        "usage": usage_of(workspace=workspace, person=request.user, days=days),
        "periods": PERIODS,
        "month": month_of_person(workspace.pk, request.user.pk),
        "may_enter_prices": has_permission(
            request.actor, Permission.MANAGE_BUDS, workspace_id=workspace.pk
        ),
    }
    return render(request, "chat/usage.html", context)
