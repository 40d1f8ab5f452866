"""A suspended member can do nothing, loses nothing, and is told so."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.alerts.notices import readers_of
from audit.models import AuditEntry
from audit.reviews.schedules import possible_recipients
from chat.models import Conversation
from chat.sockets.rounds import RightsCheck, look
from chat.sockets.socket_access import SocketAccess, why_shut_out
from chat.wire.events import CloseCode
from mcp_servers.gate.resolving import may_still_enter
from tests.factories import Tenant, TwoTenants
from workspaces.actors import Actor, Role
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.people.entering import open_workspaces
from workspaces.people.memberships import suspended_addresses
from workspaces.people.services import change_membership, remove_member
from workspaces.people.suspending import resume_member, suspend_member
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db


def membership_of(tenant: Tenant, who: str) -> Membership:
    rows = Membership.objects.also_suspended(tenant.workspace)
    return rows.get(user=tenant.people[who])


def suspend(tenant: Tenant, who: str, by: str = "owner", reason: str = "") -> Membership:
    return suspend_member(
        membership=membership_of(tenant, who), reason=reason, actor=tenant.actor(by)
    )


def token_of(tenant: Tenant, who: str) -> str:
    _, plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.people[who],
        name="script",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor(who),
    )
    return plain


def test_nothing_opens_for_a_suspended_member(tenant: Tenant) -> None:
    """SEC-385, SEC-1021: pages, REST by session and token, rows, sockets and the gate refuse at once; others notice nothing."""
    client = tenant.client("admin")
    bearer = {"Authorization": f"Bearer {token_of(tenant, 'admin')}"}
    slug = tenant.workspace.slug
    assert Client().get("/api/buds/", headers=bearer).status_code == 200
    session_key = client.session.session_key
    door = SocketAccess(tenant.admin, slug, ip_address=None, session_key=session_key)
    assert door.reason_to_close() is None
    suspend(tenant, "admin", reason="Lost laptop")
    for path in (f"/w/{slug}/", f"/w/{slug}/people/", f"/w/{slug}/servers/", "/", "/admin/"):
        page = client.get(path)
        assert page.status_code == 403, path
        assert "is suspended" in page.content.decode()
        assert "Lost laptop" in page.content.decode()
    for caller, head in ((Client(), bearer), (client, {"X-Workspace": slug}), (client, {})):
        answer = caller.get("/api/buds/", headers=head)
        assert answer.status_code == 403
        assert "suspended" in answer.json()["errors"][0]["detail"]
    admin, workspace = tenant.admin, tenant.workspace
    assert not open_workspaces(admin).exists()
    assert not Membership.objects.for_workspace(workspace).visible_to(admin).exists()
    assert not may_still_enter(admin.pk, workspace.pk)
    assert tenant.actor("admin").role is None
    with pytest.raises(NotFound):
        SocketAccess(admin, workspace.slug, ip_address=None, session_key=None)
    assert door.reason_to_close() is CloseCode.ACCESS_SUSPENDED
    with pytest.raises(PermissionDenied):
        door.turn(uuid7())
    assert tenant.client("member").get(f"/w/{slug}/").status_code == 200


def test_an_open_page_is_told_why_it_was_shut_out(two_workspaces: TwoTenants) -> None:
    """REL-1904: by the round and by the nudge alike, and whoever comes back meanwhile; strangers learn nothing."""
    tenant = two_workspaces.a
    slug, key = tenant.workspace.slug, tenant.client("member").session.session_key
    door = SocketAccess(tenant.member, slug, ip_address=None, session_key=key)

    def codes() -> set[CloseCode | None]:
        return {
            door.reason_to_close(),
            *(one.reason_to_close for one in look([(door, ())], RightsCheck.ALL)),
        }

    assert codes() == {None}
    suspend(tenant, "member")
    assert codes() == {CloseCode.ACCESS_SUSPENDED}
    assert why_shut_out(tenant.member, slug) is CloseCode.ACCESS_SUSPENDED
    Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=False)
    assert codes() == {CloseCode.WORKSPACE_SUSPENDED}
    assert why_shut_out(two_workspaces.b.member, slug) is CloseCode.NOT_A_MEMBER
    Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=True)
    resume_member(membership=membership_of(tenant, "member"), actor=tenant.actor("owner"))
    assert codes() == {None}
    remove_member(membership=membership_of(tenant, "member"), actor=tenant.actor("owner"))
    assert codes() == {CloseCode.NOT_A_MEMBER}
    tenant.member.is_active = False
    tenant.member.save()
    assert codes() == {CloseCode.ACCOUNT_OFF}


def said_by(page: Any) -> str:
    """The heading and the words of a page that shows an error."""
    found = re.search(r"<h1>.*?</p>", page.content.decode(), re.S)
    assert found
    return found[0]


def test_members_of_a_suspended_workspace_are_told_so_and_nobody_else_is(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-752, REL-2403: on pages and over REST, with whom to ask, and in the terminal. Strangers find nothing."""
    tenant, other = two_workspaces.a, two_workspaces.b
    workspace, slug = tenant.workspace, tenant.workspace.slug
    token = {"Authorization": f"Bearer {token_of(tenant, 'member')}"}
    clients = {who: tenant.client(who) for who in ("member", "admin", "owner")}
    stranger = other.client("admin")
    missing = stranger.get("/w/no-such-workspace/")
    workspace.is_active = False
    workspace.save()
    for client in clients.values():
        for path in (f"/w/{slug}/", f"/w/{slug}/people/", "/", "/admin/"):
            page = client.get(path)
            assert page.status_code == 403, path
            text = page.content.decode()
            assert f"{workspace.name} is suspended" in text
            assert "The people who run this installation" in text
        for head in ({"X-Workspace": slug}, {}):
            answer = client.get("/api/buds/", headers=head)
            assert answer.status_code == 403
            detail = answer.json()["errors"][0]["detail"]
            assert detail.startswith(f"The workspace {workspace.name} is suspended. Ask the people")
    by_token = Client().get("/api/buds/", headers=token)
    assert by_token.status_code == 403
    assert by_token.json()["errors"][0]["detail"] == detail
    page = stranger.get(f"/w/{slug}/")
    assert (page.status_code, said_by(page)) == (404, said_by(missing))
    assert stranger.get("/api/buds/", headers={"X-Workspace": slug}).status_code == 404
    with pytest.raises(CommandError, match=r"is suspended\. Open it again"):
        call_command("export_workspace", "--workspace", slug)
    anonymous = Client().get(f"/w/{slug}/")
    assert "suspended" not in anonymous.content.decode()
    workspace.is_active = True
    workspace.save()
    assert clients["member"].get(f"/w/{slug}/").status_code == 200
    assert Client().get("/api/buds/", headers=token).status_code == 200


def test_a_token_of_a_person_who_left_tells_nothing_of_a_suspended_workspace(
    tenant: Tenant,
) -> None:
    """SEC-1021: also where its row is still there."""
    token = {"Authorization": f"Bearer {token_of(tenant, 'member')}"}
    Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=False)
    Membership.unscoped.filter(user=tenant.member).delete()
    assert Client().get("/api/buds/", headers=token).status_code == 401


def test_the_owner_of_the_platform_reads_how_a_suspended_workspace_is_opened_again(
    tenant: Tenant, superuser: User
) -> None:
    """REL-1778: also where they are no member of it; the way leads to the page with its switch."""
    workspace, client = tenant.workspace, Client()
    client.force_login(superuser, backend="allauth.account.auth_backends.AuthenticationBackend")
    workspace.is_active = False
    workspace.save()
    page = client.get(f"/w/{workspace.slug}/")
    assert page.status_code == 403
    text = page.content.decode()
    assert f"{workspace.name} is suspended" in text
    assert "Ask them why" not in text
    there = reverse("admin:workspaces_workspace_change", args=[workspace.pk])
    assert f'href="{there}"' in text
    assert 'name="is_active"' in client.get(there).content.decode()
    assert client.get("/w/no-such-workspace/").status_code == 404


def test_nobody_counts_on_a_suspended_member(tenant: Tenant) -> None:
    """SEC-385: they get no notices, mails or files of the log, and no owner is suspended who is the only one able."""
    suspend(tenant, "admin")
    suspend(tenant, "auditor")
    assert tenant.admin.pk not in readers_of(tenant.workspace.pk)
    assert possible_recipients(tenant.workspace.pk) == []
    assert suspended_addresses(tenant.workspace.pk) == {tenant.admin.email, tenant.auditor.email}
    resume_member(membership=membership_of(tenant, "admin"), actor=tenant.actor("owner"))
    owner = tenant.actor("owner")
    change_membership(
        membership=membership_of(tenant, "admin"), role=Role.OWNER, is_auditor=False, actor=owner
    )
    suspend(tenant, "admin")
    rest = membership_of(tenant, "owner")
    with pytest.raises(Conflict):  # the other owner is suspended
        change_membership(membership=rest, role=Role.MEMBER, is_auditor=False, actor=owner)
    with pytest.raises(Conflict):
        remove_member(membership=rest, actor=owner)
    system = Actor.system(label="test", source=owner.source, workspace_id=tenant.workspace.pk)
    with pytest.raises(Conflict):
        suspend_member(membership=rest, actor=system)


def test_everything_is_there_again_afterwards(tenant: Tenant) -> None:
    """REL-520: rows and tokens rest, and work again once the member is let in."""
    bearer = {"Authorization": f"Bearer {token_of(tenant, 'member')}"}
    suspend(tenant, "member", by="admin")
    assert ApiToken.objects.for_workspace(tenant.workspace).count() == 1
    assert Conversation.objects.for_workspace(tenant.workspace).count() == 0
    resume_member(membership=membership_of(tenant, "member"), actor=tenant.actor("admin"))
    assert Client().get("/api/buds/", headers=bearer).status_code == 200
    assert tenant.client("member").get(f"/w/{tenant.workspace.slug}/").status_code == 200
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert entries.count() == 3  # with the token


def test_who_may_be_suspended_by_whom(two_workspaces: TwoTenants) -> None:
    """REL-520: nobody above oneself, not oneself, not twice, not the platform's owner, nobody elsewhere."""
    tenant = two_workspaces.a
    for who, by in (("owner", "admin"), ("member", "member"), ("admin", "auditor")):
        with pytest.raises(PermissionDenied):
            suspend(tenant, who, by=by)
    with pytest.raises(Conflict):
        suspend(tenant, "admin", by="admin")
    with pytest.raises(InvalidInput):
        suspend(tenant, "member", reason="x" * 301)
    suspend(tenant, "member")
    with pytest.raises(Conflict):
        suspend(tenant, "member")
    resume_member(membership=membership_of(tenant, "member"), actor=tenant.actor())
    with pytest.raises(Conflict):
        resume_member(membership=membership_of(tenant, "member"), actor=tenant.actor())
    tenant.member.is_superuser = True
    tenant.member.save()
    with pytest.raises(Conflict):
        suspend(tenant, "member")
    with pytest.raises(PermissionDenied):
        suspend_member(membership=membership_of(two_workspaces.b, "member"), actor=tenant.actor())


def test_a_suspension_stays_in_its_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-385: the person goes on working in their other workspace."""
    a, b = two_workspaces.a, two_workspaces.b
    Membership.objects.create(workspace=b.workspace, user=a.member, role="member")
    suspend(a, "member")
    client = a.client("member")
    assert client.get(f"/w/{a.workspace.slug}/").status_code == 403
    assert client.get(f"/w/{b.workspace.slug}/").status_code == 200
    assert client.get("/").status_code == 302
    assert a.client("member").get("/w/nowhere/").status_code == 404
