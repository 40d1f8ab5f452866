"""Lists of pages, page by page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.models import SignOff
from mcp_servers.models import ToolPermission
from tests.factories import Tenant
from tests.mcp_servers.factories import demo_server, stored_tool
from tests.paging import rows_of_all_pages
from workspaces.models import Invitation, JoinLink, Membership, User

pytestmark = pytest.mark.django_db
MANY = 230


def members(tenant: Tenant) -> None:
    people = [User(email=f"person-{number}@example.org") for number in range(MANY)]
    User.objects.bulk_create(people)
    Membership.unscoped.bulk_create(
        Membership(workspace=tenant.workspace, user=person, role="member") for person in people
    )


def invitations(tenant: Tenant) -> None:
    Invitation.objects.bulk_create(
        Invitation(
            workspace=tenant.workspace,
            email=f"guest-{number}@example.org",
            token_hash=f"{number:064}",
            invited_by=tenant.admin,
            expires_at=timezone.now() + timedelta(days=1),
        )
        for number in range(MANY)
    )


def join_links(tenant: Tenant) -> None:
    JoinLink.objects.bulk_create(
        JoinLink(
            workspace=tenant.workspace,
            email_domain="example.org",
            token_hash=f"{number:064}",
            hint=f"{number}",
            most_uses=5,
            made_by=tenant.admin,
            expires_at=timezone.now() + timedelta(days=1),
        )
        for number in range(MANY)
    )


def permissions(tenant: Tenant) -> None:
    server = demo_server(tenant, "notes")
    ToolPermission.objects.bulk_create(
        ToolPermission(
            workspace=tenant.workspace,
            user=tenant.admin,
            tool=stored_tool(server, f"tool_{number}"),
            definition_hash="0" * 64,
        )
        for number in range(MANY)
    )


def sign_offs(tenant: Tenant) -> None:
    SignOff.objects.bulk_create(
        SignOff(
            workspace_id=tenant.workspace.pk,
            since=timezone.now() - timedelta(days=1),
            until=timezone.now(),
            signed_by="admin",
            entry_id=uuid7(),
        )
        for _ in range(MANY)
    )


@pytest.mark.parametrize(
    ("fill", "path", "rows", "ways", "others"),
    [
        (members, "people/", "members", "ways", 4),
        (invitations, "people/invite/", "invitations", "invitation_ways", 0),
        (join_links, "people/invite/", "join_links", "link_ways", 0),
        (permissions, "tool-permissions/", "permissions", "ways", 0),
        (sign_offs, "audit/reviews/", "sign_offs", "ways", 0),
    ],
)
def test_no_list_ends_before_its_last_row(
    tenant: Tenant,
    fill: Callable[[Tenant], None],
    path: str,
    rows: str,
    ways: str,
    others: int,
) -> None:
    """REL-841: each row comes once, on one of the pages, and a page that does not exist is told."""
    fill(tenant)
    client = tenant.client("auditor" if fill is sign_offs else "admin")
    where = f"/w/{tenant.workspace.slug}/{path}"
    shown = [_key_of(one) for one in rows_of_all_pages(client, where, rows, ways)]
    assert len(shown) == len(set(shown)) == MANY + others
    first = client.get(where).context
    assert len(first[rows]) == 100
    mark = first[ways].following.partition("?")[2].partition("=")[0]
    page = client.get(f"{where}?{mark}=nonsense")
    assert page.context["address_faults"] == ["This page does not exist. The first one is shown."]
    assert "This page does not exist. The first one is shown." in page.content.decode()


def _key_of(one: Any) -> Any:
    row = one[0] if isinstance(one, tuple) else one
    if isinstance(row, dict):
        return row["row"].pk
    return (row if hasattr(row, "pk") else row.row).pk
