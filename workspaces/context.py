"""What every page of a signed-in person knows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from workspaces.middleware import signed_in_user
from workspaces.workspace_choices import WorkspaceMenu, choices_of


def workspaces(request: HttpRequest) -> dict[str, Any]:
    """`workspaces` (`.shown`, `.has_more`), for the switcher: asked for only by pages that show it."""

    def read() -> WorkspaceMenu:
        user = signed_in_user(request) if hasattr(request, "user") else None
        if user is None:
            return WorkspaceMenu(shown=[], has_more=False)
        return choices_of(user, getattr(request, "workspace", None))

    return {"workspaces": SimpleLazyObject(read)}
