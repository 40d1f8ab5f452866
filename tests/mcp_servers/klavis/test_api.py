"""Hosted servers over REST: what runs together, keys, rules on actions, and what others have."""

from __future__ import annotations

from typing import Any

from audit.models import AuditEntry
from mcp_servers.klavis import installing
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.models import ActionRule, McpServer
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.klavis.conftest import install
from tests.row_actions import act, notices

HOSTED = "/api/hosted-servers/"
HEADERS = {"X-Workspace": "acme"}
SENT: Any = {"content_type": "application/json", "headers": HEADERS}


def test_several_services_behind_one_server(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1107: made and changed over REST, shown on its page."""
    admin = tenant.client("admin")
    made = admin.post(HOSTED, {"services": ["gmail", "weather"]}, **SENT)
    assert made.status_code == 201
    row = made.json()
    assert (row["state"], {one.casefold() for one in row["services"]}) == (
        "ready",
        {"gmail", "weather"},
    )
    changed = admin.patch(f"{HOSTED}{row['id']}/", {"services": ["weather"]}, **SENT).json()
    assert [one.casefold() for one in changed["services"]] == ["weather"]
    page = admin.get(f"/w/acme/servers/klavis/{row['id']}/").content.decode()
    assert "Weather" in page
    assert admin.patch(f"{HOSTED}{row['id']}/", changed, **SENT).status_code == 200
    for services in (["klingon"], []):
        refused = admin.patch(f"{HOSTED}{row['id']}/", {"services": services}, **SENT)
        assert refused.status_code in {400, 422}
        assert refused.json()["errors"][0]["attr"] == "service"
    assert tenant.client("member").post(HOSTED, {"services": ["gmail"]}, **SENT).status_code == 403


def test_a_key_goes_in_and_never_out(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-551: it goes to the provider, and stands in no answer and no entry."""
    instance = install(tenant, "Slack")
    path, body = f"{HOSTED}{instance.pk}/credential/", {"secret": "xoxb-hidden-key"}
    assert tenant.client("member").post(path, body, **SENT).status_code == 403
    admin = tenant.client("admin")
    given = admin.post(path, body, **SENT)
    assert (given.status_code, given.json()["state"]) == (200, "ready")
    assert "xoxb" not in given.content.decode()
    page = admin.get(f"/w/acme/servers/klavis/{instance.pk}/").content.decode()
    assert "Ready" in page
    assert "xoxb" not in page
    entries = AuditEntry.objects.for_workspace(tenant.workspace).values_list("details", flat=True)
    assert "xoxb" not in str(list(entries))
    assert admin.post(path, {"secret": "a\u0007b"}, **SENT).status_code in {400, 422}


def test_rules_on_actions_over_rest(tenant: Tenant, installed: KlavisInstance) -> None:
    """REL-1107: set, listed, changed and taken back; the server's page shows them."""
    admin, page = tenant.client("admin"), f"/w/acme/servers/klavis/{installed.pk}/"
    body = {
        "server_id": str(installed.server_id),
        "service": "gmail",
        "action": "send",
        "effect": "deny",
    }
    made = admin.post("/api/action-rules/", body, **SENT)
    assert (made.status_code, made.json()["effect"]) == (201, "deny")
    shown = admin.get(page).content.decode()
    assert "gmail / send" in shown
    assert "Refused" in shown
    again = admin.post("/api/action-rules/", {**body, "effect": "confirm"}, **SENT).json()
    assert again["id"] == made.json()["id"]
    query = f"/api/action-rules/?server={installed.server_id}&effect=confirm"
    [listed] = admin.get(query, headers=HEADERS).json()["results"]
    assert listed["action"] == "send"
    assert admin.post("/api/action-rules/", {**body, "action": ""}, **SENT).status_code == 400
    member = tenant.client("member")
    assert member.get("/api/action-rules/", headers=HEADERS).json()["results"] == []
    assert member.post("/api/action-rules/", body, **SENT).status_code == 403
    path = f"/api/action-rules/{again['id']}/"
    assert member.delete(path, headers=HEADERS).status_code == 404
    assert admin.delete(path, headers=HEADERS).status_code == 204
    assert not ActionRule.objects.for_workspace(tenant.workspace).exists()


def test_rules_are_for_hosted_servers(tenant: Tenant, account: KlavisAccount) -> None:
    """REL-1107: another server has tools, each with its own rule."""
    server = McpServer.objects.create(
        workspace=tenant.workspace, name="plain", url="https://plain.example.org/mcp"
    )
    body = {"server_id": str(server.pk), "action": "send", "effect": "deny"}
    refused = tenant.client("admin").post("/api/action-rules/", body, **SENT)
    assert refused.status_code == 409


def test_administrators_see_and_uninstall_what_others_have(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1107: whose it is and how it is, page by page; never where its sign-in goes."""
    tenant.allow_personal_servers()
    own = install(tenant, "Gmail", "member", for_workspace=False)
    admin, member = tenant.client("admin"), tenant.client("member")
    seen = admin.get(f"{HOSTED}others/?page_size=1", headers=HEADERS).json()
    assert seen["results"] == [
        {
            "id": str(own.pk),
            "title": "Gmail",
            "whose": tenant.member.email,
            "state": "waiting_for_sign_in",
        }
    ]
    assert member.get(f"{HOSTED}others/", headers=HEADERS).status_code == 403
    path = f"{HOSTED}{own.pk}/"
    assert admin.get(path, headers=HEADERS).status_code == 404
    assert admin.post(f"{path}credential/", {"secret": "x"}, **SENT).status_code == 404
    assert admin.delete(path, headers=HEADERS).status_code == 204
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()


def test_deletions_that_wait_are_listed_and_given_up(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """REL-1107: over REST, and the page has none of them any more."""
    provider.fail("DELETE", "/", status=500, times=99)
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    admin, member = tenant.client("admin"), tenant.client("member")
    page = "/w/acme/servers/klavis/"
    assert "Still to be deleted" in admin.get(page).content.decode()
    [listed] = admin.get("/api/hosted-removals/", headers=HEADERS).json()["results"]
    assert set(listed) == {
        *("id", "label", "kind", "created_at", "attempts", "next_attempt_at", "last_error")
    }
    path = f"/api/hosted-removals/{listed['id']}/"
    assert member.get("/api/hosted-removals/", headers=HEADERS).status_code == 403
    assert member.delete(path, headers=HEADERS).status_code == 403
    assert admin.delete(path, headers=HEADERS).status_code == 204
    assert not KlavisRemoval.objects.for_workspace(tenant.workspace).exists()
    assert "Still to be deleted" not in admin.get(page).content.decode()


def test_hosted_servers_are_uninstalled_in_the_admin(
    tenant: Tenant, installed: KlavisInstance
) -> None:
    """REL-1190, REL-1191: the page says that it cannot be undone."""
    url, client = "/admin/klavis/klavisinstance/", tenant.client("admin")
    text = act(client, url, "uninstall", installed, confirmed=False).content.decode()
    assert "Uninstall 1 hosted server?" in text
    assert "This cannot be undone." in text
    assert notices(act(client, url, "uninstall", installed)) == ["1 hosted server uninstalled."]
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
