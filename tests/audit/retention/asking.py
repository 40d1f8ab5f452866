"""The REST interface as a role of a workspace asks it."""

from __future__ import annotations

from typing import Any

from tests.factories import Tenant


def ask(tenant: Tenant, verb: str, path: str, body: Any = None, role: str = "owner") -> Any:
    call = getattr(tenant.client(role), verb)
    headers = {"X-Workspace": tenant.workspace.slug}
    return call(f"/api/{path}", body, content_type="application/json", headers=headers)
