"""What the header of every page shows of the log."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from audit.alerts import notices
from workspaces.middleware import signed_in_user


def bell(request: HttpRequest) -> dict[str, Any]:
    """`unread_notices`: asked for only by pages that show the bell."""

    def read() -> int:
        user = signed_in_user(request) if hasattr(request, "user") else None
        workspace = getattr(request, "workspace", None)
        return notices.unread(workspace, user) if user is not None and workspace else 0

    return {"unread_notices": SimpleLazyObject(read)}
