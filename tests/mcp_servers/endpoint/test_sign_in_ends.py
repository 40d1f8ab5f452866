"""Sign-ins of other MCP clients end with what they came from, are listed, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.endpoint.sign_in import clients, ending, grants, views
from mcp_servers.endpoint.sign_in.ending import EndReason
from mcp_servers.models import ClientSignIn, ClientToken, KnownClient
from mcp_servers.pages.views import clients as page_views
from mcp_servers.registry.services.rules import set_workspace_rule
from tests.factories import PASSWORD, Tenant
from tests.mcp_servers.endpoint.client import McpClient
from tests.mcp_servers.endpoint.signing_in import SigningIn, register
from workspaces.models import Membership, Workspace
from workspaces.people.services import remove_member
from workspaces.people.suspending import suspend_member

pytestmark = pytest.mark.django_db(transaction=True)


def _leave(tenant: Tenant) -> None:
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=row, actor=tenant.actor("admin"))


def _suspend(tenant: Tenant) -> None:
    row = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    suspend_member(membership=row, actor=tenant.actor("admin"))


def _change_password(tenant: Tenant) -> None:
    new = "another horse battery staple"
    values = {"oldpassword": PASSWORD, "password1": new, "password2": new}
    assert tenant.client("member").post("/accounts/password/change/", values).status_code == 302


def _sign_out_everywhere(tenant: Tenant) -> None:
    browser = tenant.client("member")
    slug = {"X-Workspace": tenant.workspace.slug}
    answer = browser.post("/api/sessions/sign-out-others/", headers=slug)
    assert answer.status_code == 200


def _switch_off(tenant: Tenant) -> None:
    tenant.member.is_active = False
    tenant.member.save()


def _forbid(tenant: Tenant) -> None:
    set_workspace_rule(
        workspace=tenant.workspace,
        rule="allows_mcp_clients",
        is_on=False,
        actor=tenant.actor("owner"),
    )


def _restore(tenant: Tenant) -> None:
    assert ending.end_all(EndReason.RESTORED) == 1


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (_leave, EndReason.LEFT),
        (_suspend, EndReason.SUSPENDED),
        (_change_password, EndReason.ACCOUNT),
        (_sign_out_everywhere, EndReason.ACCOUNT),
        (_switch_off, EndReason.ACCOUNT),
        (_forbid, EndReason.RULE),
        (_restore, EndReason.RESTORED),
    ],
)
def test_a_sign_in_ends_with_what_it_came_from(
    tenant: Tenant, event: Callable[[Tenant], None], reason: EndReason
) -> None:
    """SEC-536: at once, with an entry that says why, and it does not come back."""
    begun = SigningIn.begun(tenant)
    tokens = begun.tokens()
    event(tenant)
    assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 401
    assert begun.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="mcp_client.ended")
    assert (entry.details["reason"], entry.details["name"]) == (reason.value, "Rake")


def test_a_sign_in_rests_with_its_workspace(tenant: Tenant) -> None:
    """SEC-1021: a client that reads 401 or gets no new tokens forgets its sign-in. It serves again afterwards."""
    begun = SigningIn.begun(tenant)
    tokens = begun.tokens()
    mine = Workspace.objects.filter(pk=tenant.workspace.pk)
    mine.update(is_active=False)
    for renewed in (False, True):
        if renewed:
            tokens = begun.refresh(tokens["refresh_token"]).json()
        client = McpClient(tenant, tokens["access_token"])
        refused = client.post("tools/list")
        assert (refused.status_code, "WWW-Authenticate" in refused.headers) == (403, False)
        assert "is suspended" in refused.json()["error"]["message"]
    mine.update(is_active=True)
    assert client.post("tools/list").status_code == 200


def test_a_password_that_changes_past_all_services_ends_it_too(tenant: Tenant) -> None:
    """SEC-536: each use asks what the person is signed in with now."""
    begun = SigningIn.begun(tenant)
    tokens = begun.tokens()
    type(tenant.member).objects.filter(pk=tenant.member.pk).update(password="!")
    assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 401
    assert begun.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_person_sees_and_ends_their_clients(tenant: Tenant) -> None:
    """REL-1103: on the page and over REST, without tokens; nobody else sees them there."""
    tokens = [SigningIn.begun(tenant, name=f"Rake {number}").tokens() for number in range(2)]
    slug = tenant.workspace.slug
    member, admin = tenant.client("member"), tenant.client("admin")
    page = member.get(f"/w/{slug}/servers/clients/").content.decode()
    assert "Rake 0" in page
    assert "All tools, resources and prompts that the member may use" in page
    assert "Rake 0" not in admin.get(f"/w/{slug}/servers/clients/").content.decode()
    rows = member.get("/api/mcp-clients/", headers={"X-Workspace": slug}).json()["results"]
    assert {row["name"] for row in rows} == {"Rake 0", "Rake 1"}
    assert admin.get("/api/mcp-clients/", headers={"X-Workspace": slug}).json()["results"] == []
    shown = page + str(rows)
    for one in tokens:
        assert one["access_token"] not in shown
        assert one["refresh_token"] not in shown
    by_name = {row["name"]: row["id"] for row in rows}
    ended = member.delete(f"/api/mcp-clients/{by_name['Rake 0']}/", headers={"X-Workspace": slug})
    assert ended.status_code == 204
    url = f"/w/{slug}/servers/clients/{by_name['Rake 1']}/end/"
    assert admin.post(url).status_code == 404
    assert member.post(url).status_code == 302
    for one in tokens:
        assert McpClient(tenant, one["access_token"]).post("tools/list").status_code == 401
    log = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="mcp_client.ended")
    assert {entry.details["reason"] for entry in log} == {"ended by its person"}


def test_admins_see_and_end_those_of_members(tenant: Tenant) -> None:
    """REL-1103: with whose they are; a member may not."""
    tokens = SigningIn.begun(tenant).tokens()
    slug = tenant.workspace.slug
    admin, member = tenant.client("admin"), tenant.client("member")
    page = admin.get(f"/w/{slug}/servers/clients/members/").content.decode()
    assert "Rake" in page
    assert tenant.member.email in page
    assert member.get(f"/w/{slug}/servers/clients/members/").status_code == 403
    headers = {"X-Workspace": slug}
    assert member.get("/api/member-mcp-clients/", headers=headers).status_code == 403
    rows = admin.get("/api/member-mcp-clients/", headers=headers).json()["results"]
    assert [(row["name"], row["user"]) for row in rows] == [("Rake", tenant.member.email)]
    url = f"/w/{slug}/servers/clients/{rows[0]['id']}/end/"
    assert admin.post(url, {"back": "members"}).status_code == 302
    assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 401
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="mcp_client.ended")
    assert entry.details["reason"] == "ended by an administrator"


def test_lists_come_page_by_page(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1103: the newest first, for people and for admins."""
    begun = SigningIn.begun(tenant)
    for _ in range(3):
        begun.tokens()
    monkeypatch.setattr(page_views, "MOST_ON_PAGE", 2)
    for role, path in (("member", "clients/"), ("admin", "clients/members/")):
        browser = tenant.client(role)
        url = f"/w/{tenant.workspace.slug}/servers/{path}"
        first = browser.get(url)
        assert len(first.context["sign_ins"]) == 2
        address = first.context["ways"].following.partition("#")[0]
        assert len(browser.get(url + address).context["sign_ins"]) == 1


def test_the_log_tells_the_story_without_tokens(tenant: Tenant) -> None:
    """SEC-539: registered, let in and signed out, with who and with what."""
    begun = SigningIn.begun(tenant)
    code = begun.code()
    tokens = begun.exchange(code).json()
    begun.answer("refuse")
    Client().post("/oauth/revoke", {"client_id": begun.client_id, "token": tokens["access_token"]})
    entries = list(AuditEntry.objects.across_workspaces().filter(action__startswith="mcp_client."))
    assert [entry.action for entry in sorted(entries, key=lambda one: one.pk)] == [
        "mcp_client.registered",
        "mcp_client.allowed",
        "mcp_client.refused",
        "mcp_client.ended",
    ]
    text = str([entry.details for entry in entries])
    assert "ended by the client" in text
    for secret in (code, tokens["access_token"], tokens["refresh_token"]):
        assert secret not in text


def test_registration_is_limited(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-537: for each address, and as a whole: a further client takes the place of one that nobody has let in."""
    monkeypatch.setattr(views, "MOST_REGISTRATIONS", 2)
    assert [register().status_code for _ in range(3)] == [201, 201, 429]
    cache.clear()
    monkeypatch.setattr(views, "MOST_REGISTRATIONS", 20)
    monkeypatch.setattr(clients, "MOST_UNUSED", 2)
    begun = SigningIn.begun(tenant)
    begun.tokens()
    assert [register(f"New {number}").status_code for number in range(3)] == [201] * 3
    waiting = KnownClient.objects.filter(used_at=None).order_by("read_at")
    assert [row.name for row in waiting] == ["New 1", "New 2"]
    assert KnownClient.objects.filter(client_id=begun.client_id).exists()
    assert register("R", *[f"https://a.example/{n}" for n in range(11)]).status_code == 400
    big = Client().post("/oauth/register", "x" * 20_000, content_type="application/json")
    assert big.status_code == 400


def test_what_nobody_uses_is_deleted(tenant: Tenant) -> None:
    """SEC-537: codes that no client came for, tokens that ran out with their sign-in, and idle clients."""
    begun = SigningIn.begun(tenant)
    begun.code()
    tokens = ClientToken.objects.for_workspace(tenant.workspace)
    past = timezone.now() - timedelta(seconds=1)
    tokens.update(expires_at=past)
    ending.forget_ended()
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()
    begun.tokens()
    assert ending.forget_ended() == 0
    tokens.update(expires_at=past)
    ending.forget_ended()
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="mcp_client.ended")
    assert entry.details["reason"] == "ran out"
    assert clients.forget_unused() == 0
    KnownClient.objects.update(used_at=timezone.now() - clients.IDLE_FOR - timedelta(hours=1))
    assert clients.forget_unused() == 1


def test_a_further_sign_in_takes_the_place_of_an_idle_one(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-537: a person has so many in a workspace, and no more."""
    monkeypatch.setattr(grants, "MOST_SIGN_INS", 2)
    begun = SigningIn.begun(tenant)
    first, second, third = (begun.tokens() for _ in range(3))
    found: list[Any] = [
        McpClient(tenant, one["access_token"]).post("tools/list").status_code
        for one in (first, second, third)
    ]
    assert found == [401, 200, 200]
