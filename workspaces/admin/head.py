"""The head of every page of the admin: its workspace, its theme, and links to other workspaces."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from workspaces.middleware import signed_in_user
from workspaces.models import Theme
from workspaces.workspace_choices import other_admins_of


def current_workspace(request: HttpRequest) -> str:
    """The name of the workspace, under the admin's title."""
    workspace = getattr(request, "workspace", None)
    return workspace.name if workspace is not None else ""


def theme(request: HttpRequest) -> str | None:
    """The person's theme in the admin's word for it; None where they never chose one."""
    user = signed_in_user(request)
    chosen = user.theme if user is not None else ""
    return "auto" if chosen == Theme.SYSTEM else chosen or None


def other_workspaces(request: HttpRequest) -> list[dict[str, str]]:
    """The other workspaces that the person administers, for the menu at the name of this one; after many, the page of all."""
    user = signed_in_user(request)
    current = getattr(request, "workspace", None)
    if user is None or current is None:
        return []
    others = other_admins_of(user, current)
    ways = [
        {
            "icon": "swap_horiz",
            "title": other.name,
            "link": reverse("workspaces:open_admin", args=[other.slug]),
        }
        for other in others.shown
    ]
    if others.has_more:
        title = str(_("All workspaces"))
        ways.append({"icon": "more_horiz", "title": title, "link": reverse("workspaces:all")})
    return ways
