"""Buds of a workspace: one, or as many as a large team has."""

from __future__ import annotations

from typing import Any

from uuid_utils.compat import uuid7

from chat.models import Bud
from chat.pages.bud_listing import PAGE
from chat.services.buds import create_bud
from tests.factories import Tenant


def make_bud(tenant: Tenant, role: str = "admin", **values: Any) -> Bud:
    given = {"slug": "writer", "name": "Writer", **values}
    return create_bud(workspace_id=tenant.workspace.pk, actor=tenant.actor(role), values=given)


MANY = 3 * PAGE


def many_buds(tenant: Tenant, number: int = MANY, **values: Any) -> None:
    rows = (
        Bud(
            id=uuid7(),
            workspace=tenant.workspace,
            owner=tenant.admin,
            slug=f"bud-{place}",
            name=f"Bud {place // 2:05}",
            description="needle" if place == number - 1 else "",
            **{"is_archived": place % 10 == 0, **values},
        )
        for place in range(number)
    )
    Bud.unscoped.bulk_create(rows)
