"""What every page of a signed-in person knows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from workspaces.middleware import enterable_workspaces, signed_in_user

MOST_SHOWN = 50


def workspaces(request: HttpRequest) -> dict[str, Any]:
    """`workspaces`, for the switcher: asked for only by pages that show it."""

    def read() -> list[Any]:
        user = signed_in_user(request) if hasattr(request, "user") else None
        return list(enterable_workspaces(user)[:MOST_SHOWN]) if user is not None else []

    return {"workspaces": SimpleLazyObject(read)}
