"""A workspace may require two-step verification: whoever has none cannot enter, and is told how to."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client
from django.urls import reverse

from audit.models import AuditEntry
from chat.models.shared_chats import ShareAudience
from chat.sockets.rounds import RightsCheck, look
from chat.sockets.socket_access import SocketAccess, why_shut_out
from chat.wire.events import CloseCode
from mcp_servers.registry.services import set_workspace_rule
from tests.chat.providers.platform_owner import owns
from tests.chat.services.shared_chats import make_bud, make_conversation, may_read, share
from tests.factories import PASSWORD, Tenant, UserFactory, make_tenant
from tests.fakes.authorization import Issuer
from tests.mcp_servers.endpoint.client import McpClient, token_for
from tests.mcp_servers.endpoint.signing_in import SigningIn
from tests.workspaces.api.tokens import bearer, token_of
from tests.workspaces.people.authenticator_app import code_of
from tests.workspaces.people.single_sign_on import configured, text_of
from workspaces.errors import Conflict, NotFound
from workspaces.models import Membership, User, Workspace
from workspaces.people.entering import (
    enterable_workspaces,
    members_without_second_step,
    open_workspaces,
)
from workspaces.people.platform import save_workspace

pytestmark = pytest.mark.django_db


def with_app(user: User) -> User:
    """Give an account the second step, as its app would."""
    Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={})
    user.refresh_from_db()
    return user


@pytest.fixture
def tenant(tenant: Tenant) -> Tenant:
    """A workspace whose owner has the second step and requires it."""
    with_app(tenant.owner)
    require(tenant)
    return tenant


def require(tenant: Tenant, is_on: bool = True, by: str = "owner") -> None:
    set_workspace_rule(
        workspace=tenant.workspace,
        rule="requires_two_steps",
        is_on=is_on,
        actor=tenant.actor(by),
    )
    tenant.workspace.refresh_from_db()


def test_nothing_opens_without_the_second_step(tenant: Tenant) -> None:
    """SEC-1261: pages, the admin, REST by session and token, rows and sockets; all of it opens with the second step."""
    client, slug = tenant.client("admin"), tenant.workspace.slug
    session_key = client.session.session_key
    headers: tuple[tuple[Client, dict[str, str]], ...] = (
        (Client(), bearer(token_of(tenant, "chat", role="admin"))),
        (client, {"X-Workspace": slug}),
        (client, {}),
    )
    pages = (f"/w/{slug}/", f"/w/{slug}/people/", "/", "/admin/")
    for path in pages:
        page = client.get(path)
        assert page.status_code == 403, path
        assert "requires two-step verification" in page.content.decode()
    for caller, head in headers:
        answer = caller.get("/api/buds/", headers=head)
        assert answer.status_code == 403
        assert "two-step verification" in answer.json()["errors"][0]["detail"]
    with pytest.raises(NotFound):
        SocketAccess(tenant.admin, slug, ip_address=None, session_key=session_key)
    with_app(tenant.admin)
    assert [client.get(path, follow=True).status_code for path in pages] == [200] * len(pages)
    for caller, head in headers:
        assert caller.get("/api/buds/", headers=head).status_code == 200
    door = SocketAccess(tenant.admin, slug, ip_address=None, session_key=session_key)
    assert door.reason_to_close() is None


def test_an_open_page_is_told_and_comes_back(tenant: Tenant) -> None:
    """SEC-1262: by the round and by itself alike, also when somebody turns their second step off."""
    key = tenant.client("owner").session.session_key
    door = SocketAccess(tenant.owner, tenant.workspace.slug, ip_address=None, session_key=key)

    def codes() -> set[CloseCode | None]:
        return {
            door.reason_to_close(),
            *(one.reason_to_close for one in look([(door, ())], RightsCheck.ALL)),
        }

    assert codes() == {None}
    Authenticator.objects.get(user=tenant.owner).delete()
    assert codes() == {CloseCode.TWO_STEPS_NEEDED}
    assert why_shut_out(UserFactory.create(), tenant.workspace.slug) is CloseCode.NOT_A_MEMBER
    with_app(tenant.owner)
    assert codes() == {None}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["token", "sign-in"])
def test_programs_read_why_and_go_on_afterwards(tenant: Tenant, by: str) -> None:
    """SEC-1263: an MCP client is refused with words, and goes on afterwards with the token that it has."""
    require(tenant, False)
    if by == "token":
        plain = token_for(tenant, role="admin")
    else:
        plain = SigningIn.begun(tenant, role="admin").tokens()["access_token"]
    require(tenant)
    client = McpClient(tenant, plain)
    refused = client.post("tools/list")
    assert refused.status_code == 403
    assert "requires two-step verification" in refused.json()["error"]["message"]
    with_app(tenant.admin)
    assert client.post("tools/list").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_no_new_client_is_let_in_without_the_second_step(tenant: Tenant) -> None:
    """SEC-1263: the page on which a person allows an MCP client says why not."""
    page = SigningIn.begun(tenant, role="admin").page()
    assert page.status_code == 403
    assert "requires two-step verification" in text_of(page)


def test_chats_that_are_shared_in_the_workspace_are_closed_too(tenant: Tenant) -> None:
    """SEC-1264: the link for anyone stays what it is."""
    with_app(tenant.member)
    conversation = make_conversation(tenant, make_bud(tenant))
    tenant.workspace.allows_public_links = True
    tenant.workspace.save()
    shared = share(tenant, conversation, ShareAudience.WORKSPACE)
    assert not may_read(shared, tenant.admin)
    with_app(tenant.admin)
    assert may_read(shared, tenant.admin)
    Authenticator.objects.filter(user=tenant.admin).delete()
    tenant.admin.refresh_from_db()
    assert may_read(share(tenant, conversation, ShareAudience.LINK), tenant.admin)


def test_strangers_learn_nothing_of_the_rule(tenant: Tenant) -> None:
    """SEC-1261: the page of a workspace that requires it is not there for whoever is no member."""
    stranger = Client()
    stranger.force_login(UserFactory.create())
    assert stranger.get(f"/w/{tenant.workspace.slug}/").status_code == 404


def test_another_workspace_stays_open_and_is_the_first_one(
    tenant: Tenant,
) -> None:
    """REL-3313: whoever may enter a second workspace gets there, and the list of workspaces still names both."""
    other = make_tenant("other")
    Membership.objects.create(workspace=other.workspace, user=tenant.member, role="member")
    for name, one in (("Aaa", tenant), ("Zzz", other)):
        Workspace.objects.filter(pk=one.workspace.pk).update(name=name)
    client = tenant.client("member")
    assert client.get("/").headers["Location"] == f"/w/{other.workspace.slug}/"
    names = text_of(client.get(reverse("workspaces:all")))
    assert "Aaa" in names
    assert "Zzz" in names
    assert names.count("requires two-step verification") == 1
    closed = text_of(client.get(f"/w/{tenant.workspace.slug}/"))
    assert f'href="{reverse("workspaces:all")}"' in closed
    assert [one.slug for one in open_workspaces(tenant.member)] == [other.workspace.slug]


def test_nobody_requires_what_they_have_not(tenant: Tenant, superuser: User) -> None:
    """REL-3314: neither the workspace's owner nor the platform's."""
    require(tenant, False)
    Authenticator.objects.filter(user=tenant.owner).delete()
    with pytest.raises(Conflict, match="your own account first"):
        require(tenant)
    workspace = tenant.workspace
    workspace.requires_two_steps = True
    with pytest.raises(Conflict, match="your own account first"):
        save_workspace(workspace=workspace, actor=owns(superuser))
    with_app(superuser)
    save_workspace(workspace=workspace, actor=owns(superuser))
    assert Workspace.objects.get(pk=workspace.pk).requires_two_steps
    # Nor do they let themselves in by ending the rule; what else they change goes on.
    Authenticator.objects.filter(user=superuser).delete()
    workspace.name = "Renamed"
    save_workspace(workspace=workspace, actor=owns(superuser))
    workspace.requires_two_steps = False
    with pytest.raises(Conflict, match="your own account first"):
        save_workspace(workspace=workspace, actor=owns(superuser))


def test_the_rule_holds_for_the_platforms_owner(tenant: Tenant, superuser: User) -> None:
    """SEC-1261: they enter every workspace, but not that one without a second step; the rest of the admin stays open."""
    client = Client()
    client.force_login(superuser)
    assert tenant.workspace not in enterable_workspaces(superuser)
    page = client.get(f"/w/{tenant.workspace.slug}/servers/")
    assert page.status_code == 403
    assert "requires two-step verification" in text_of(page)
    assert "requires two-step verification" in text_of(client.get("/"))
    assert client.get("/admin/workspaces/workspace/").status_code == 200
    with_app(superuser)
    assert tenant.workspace in enterable_workspaces(superuser)


def test_people_who_must_use_the_provider_are_asked_there(tenant: Tenant, provider: Issuer) -> None:
    """SEC-1265: whom single sign-on alone lets in needs no second step here, and is not counted as without one."""
    ada = UserFactory.create(email="ada@example.org")
    Membership.objects.create(workspace=tenant.workspace, user=ada, role="member")
    client = Client()
    client.force_login(ada)
    address = f"/w/{tenant.workspace.slug}/"
    assert client.get(address).status_code == 403
    assert ada in without(tenant)
    with configured(provider, sso_required=True):
        assert client.get(address).status_code == 200
        assert ada not in without(tenant)
        assert tenant.member in without(tenant)


def without(tenant: Tenant) -> list[User]:
    rows = members_without_second_step(tenant.workspace).select_related("user")
    return [one.user for one in rows]


def test_a_person_turns_it_on_and_goes_on_to_the_workspace(tenant: Tenant) -> None:
    """REL-3315: the page leads to the app's key, and the last step leads back."""
    client, slug = Client(), tenant.workspace.slug
    sign_in = {"login": tenant.member.email, "password": PASSWORD}
    assert client.post(reverse("account_login"), sign_in).status_code == 302
    page = text_of(client.get(f"/w/{slug}/"))
    app = reverse("mfa_activate_totp")
    assert f'href="{app}"' in page
    assert f"You need it to enter: {tenant.workspace.name}." in text_of(
        client.get(reverse("mfa_index"))
    )
    assert (
        client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": app}).headers[
            "Location"
        ]
        == app
    )
    key = re.search(r'id="app-key">([A-Z2-7 ]+)<', client.get(app).content.decode())
    assert key is not None
    done = client.post(app, {"code": code_of(key[1])}, follow=True)
    assert f"You can enter {tenant.workspace.name} now." in text_of(done)
    assert f'href="/w/{slug}/"' in text_of(done)
    assert client.get(f"/w/{slug}/").status_code == 200
    assert "You can enter" not in text_of(client.get(reverse("mfa_index")))
    leaving = text_of(client.get(reverse("mfa_deactivate_totp")))
    assert f"you cannot enter: {tenant.workspace.name}." in leaving


def test_an_owner_sees_who_has_none_before_and_after(tenant: Tenant) -> None:
    """REL-3316: the rule says how many, its link shows who, and the log has the change."""
    client = tenant.client("owner")
    slug = tenant.workspace.slug
    rules = text_of(client.get(reverse("mcp_servers:rules", args=[slug])))
    number = members_without_second_step(tenant.workspace).count()
    assert f"{number} members have not turned it on" in rules
    shown = text_of(client.get(f"/w/{slug}/people/?two_steps=off"))
    assert tenant.member.email in shown
    assert shown.count("no two-step verification") == number
    entry = AuditEntry.objects.for_workspace(tenant.workspace).latest("created_at")
    assert "requires_two_steps" in str(entry.details)


def test_an_owner_without_a_second_step_reads_why_the_rule_stays_off(tenant: Tenant) -> None:
    """REL-3314: on the page of rules, with nothing changed."""
    require(tenant, False)
    Authenticator.objects.filter(user=tenant.owner).delete()
    rules = reverse("mcp_servers:rules", args=[tenant.workspace.slug])
    sent: dict[str, Any] = {"rule": "requires_two_steps", "is_on": "on"}
    page = tenant.client("owner").post(rules, sent, follow=True)
    assert (
        "Only people with two-step verification can change whether a workspace requires it"
        in text_of(page)
    )
    assert not Workspace.objects.get(pk=tenant.workspace.pk).requires_two_steps
