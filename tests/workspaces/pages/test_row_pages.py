"""Lists of pages, page by page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.alerts.notices import notify
from audit.models import Alert, AlertRule, AuditEntry, LegalHold, SavedView, SignOff
from audit.services import EntryDraft, record
from chat.models import BudVersion
from mcp_servers.klavis.cards import InstanceCard
from mcp_servers.klavis.models import KlavisInstance, KlavisRemoval
from mcp_servers.models import ToolPermission
from tests.chat.services.buds import make_bud
from tests.factories import Tenant
from tests.mcp_servers.factories import demo_server, stored_tool
from tests.paging import rows_of_all_pages
from workspaces.lists.row_pages import write_mark
from workspaces.models import (
    AccessRequest,
    Invitation,
    JoinLink,
    Membership,
    RequestKind,
    RequestStatus,
    User,
    Workspace,
)

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


def open_requests(tenant: Tenant) -> None:
    AccessRequest.objects.bulk_create(
        AccessRequest(
            workspace=tenant.workspace,
            requester=tenant.member,
            kind=RequestKind.OTHER,
            name=f"tool {number}",
            reason="work",
        )
        for number in range(MANY)
    )


def decided_requests(tenant: Tenant) -> None:
    open_requests(tenant)
    AccessRequest.objects.for_workspace(tenant.workspace).update(
        status=RequestStatus.DECLINED, decided_at=timezone.now(), decided_by=tenant.admin
    )


def notices(tenant: Tenant) -> None:
    for number in range(MANY):
        notify(
            workspace_id=tenant.workspace.pk,
            user_ids=[tenant.admin.pk],
            kind="alert",
            title=f"notice {number}",
            text="",
            url="",
        )


def ended_alerts(tenant: Tenant) -> None:
    rule = AlertRule.objects.create(
        workspace=tenant.workspace,
        name="Timeouts",
        condition=AlertRule.Condition.TIMEOUT,
        threshold=1,
    )
    now = timezone.now()
    Alert.objects.bulk_create(
        Alert(
            workspace=tenant.workspace,
            rule=rule,
            started_at=now - timedelta(hours=number),
            ended_at=now,
            value=1,
            peak=1,
            told_at=now,
        )
        for number in range(MANY)
    )


def legal_holds(tenant: Tenant) -> None:
    LegalHold.objects.bulk_create(
        LegalHold(
            workspace_id=tenant.workspace.pk,
            reason=f"case {number}",
            placed_by="owner",
            released_by="owner",
            released_at=timezone.now(),
        )
        for number in range(MANY)
    )


def installed_by_members(tenant: Tenant) -> None:
    KlavisInstance.objects.bulk_create(
        KlavisInstance(
            workspace=tenant.workspace,
            user=tenant.member,
            begun_by=tenant.member,
            server_name=f"service {number}",
            title=f"service {number}",
            state="failed",
        )
        for number in range(MANY)
    )


def klavis_removals(tenant: Tenant) -> None:
    KlavisRemoval.unscoped.bulk_create(
        KlavisRemoval(
            workspace_id=tenant.workspace.pk,
            base_url="https://klavis.example.org",
            dialect="current",
            kind="instance",
            label=f"service {number}",
        )
        for number in range(MANY)
    )


@pytest.mark.parametrize(
    ("fill", "path", "rows", "ways", "others"),
    [
        (members, "people/", "members", "ways", 4),
        (invitations, "people/invite/", "invitations", "invitation_ways", 0),
        (join_links, "people/invite/", "join_links", "link_ways", 0),
        (permissions, "tool-permissions/", "permissions", "ways", 0),
        (sign_offs, "audit/reviews/", "sign_offs", "ways", 0),
        (open_requests, "requests/", "open", "open_ways", 0),
        (decided_requests, "requests/", "decided", "decided_ways", 0),
        (notices, "notices/all/", "notices", "ways", 0),
        (ended_alerts, "audit/alerts/", "past", "ways", 0),
        (legal_holds, "audit/settings/", "holds", "ways", 0),
        (installed_by_members, "servers/klavis/", "others", "other_ways", 0),
        (klavis_removals, "servers/klavis/", "removals", "removal_ways", 0),
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
    """REL-841, REL-872: each row comes once, on one of the pages, and a page that does not exist is told."""
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


def test_the_last_version_of_a_page_says_what_differs_from_the_next_one(tenant: Tenant) -> None:
    """REL-872: all versions of a bud are shown, each with its difference; only the first one has none before it."""
    bud = make_bud(tenant)
    BudVersion.objects.for_workspace(tenant.workspace).filter(bud=bud).delete()
    BudVersion.objects.bulk_create(
        BudVersion(
            workspace=tenant.workspace,
            bud=bud,
            number=number,
            made_by="admin",
            values={"name": f"Writer {min(number, 100)}"},
        )
        for number in range(1, MANY)
    )
    client = tenant.client("admin")
    where = f"/w/{tenant.workspace.slug}/buds/{bud.pk}/versions/"
    shown = rows_of_all_pages(client, where, "versions", "ways")
    assert [one["version"].number for one in shown] == [*range(MANY - 1, 0, -1)]
    assert [one["version"].number for one in shown if one["is_first"]] == [1]
    differing = [one["version"].number for one in shown if one["changes"]]
    assert differing == [*range(100, 1, -1)]
    assert "Nothing differs from the version before." in client.get(where).content.decode()
    for mark in (write_mark("x", str(bud.pk)), write_mark("9" * 30, str(bud.pk))):
        assert client.get(where, {"after": mark}).context["address_faults"]


def test_every_saved_view_of_the_log_is_offered(tenant: Tenant) -> None:
    """REL-872: one's own are not lost behind those that others share."""
    SavedView.objects.bulk_create(
        SavedView(
            workspace=tenant.workspace,
            owner=tenant.admin,
            page=SavedView.Page.LOG,
            name=f"a {number}",
            query="range=7d",
            is_shared=True,
        )
        for number in range(101)
    )
    SavedView.objects.create(
        workspace=tenant.workspace,
        owner=tenant.people["auditor"],
        page=SavedView.Page.LOG,
        name="z",
        query="range=7d",
    )
    views = tenant.client("auditor").get(f"/w/{tenant.workspace.slug}/audit/").context["views"]
    assert views[-1].name == "z"


def test_the_platforms_owner_reads_of_all_workspaces_and_all_its_entries(
    tenant: Tenant, superuser: User, client: Client
) -> None:
    """REL-872: both lists of the page, each to its end; an entry's mark that is none of ours is told."""
    Workspace.objects.bulk_create(
        Workspace(name=f"Team {number}", slug=f"team-{number}") for number in range(MANY)
    )
    for _ in range(MANY // 2):
        record(
            EntryDraft(action=Action.AUTH_SIGNED_IN, actor=tenant.actor("admin"), workspace_id=None)
        )
    client.force_login(superuser, backend="allauth.account.auth_backends.AuthenticationBackend")
    where = "/platform/audit/"
    shown = rows_of_all_pages(client, where, "tenants", "workspace_ways")
    assert len({one["workspace"].pk for one in shown}) == len(shown) == Workspace.objects.count()
    entries = rows_of_all_pages(client, where, "entries", "entry_ways")
    own = AuditEntry.objects.across_workspaces().filter(workspace_id=None)
    assert len({one.pk for one in entries}) == len(entries) == own.count() > 100
    page = client.get(where, {"entries_after": write_mark("nonsense", str(superuser.pk))})
    assert page.context["address_faults"]


def _key_of(one: Any) -> Any:
    row = one[0] if isinstance(one, tuple) else one
    if isinstance(row, dict):
        return row["row"].pk
    if isinstance(row, InstanceCard):
        return row.id
    return (row if hasattr(row, "pk") else row.row).pk
