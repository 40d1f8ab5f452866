"""A person asks to be let in."""

from __future__ import annotations

from typing import Any

from tests.factories import Tenant


def page(tenant: Tenant) -> str:
    return f"/w/{tenant.workspace.slug}/requests/"


def send(tenant: Tenant, who: str = "member", **changes: str) -> Any:
    form = {"kind": "tool", "name": "mail.send", "reason": "Weekly report", **changes}
    return tenant.client(who).post(page(tenant), form)
