"""The pages on the hosted provider, and where its secrets must never be seen."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import connection
from django.test import Client
from django.utils import timezone

from mcp_servers.client.connections.hooks import TraceRecord
from mcp_servers.client.errors import ApprovalMissing
from mcp_servers.gate import call_tool
from mcp_servers.klavis import installing
from mcp_servers.klavis.limits import MOST_HOSTED, MOST_POLLS, count_hosted, count_poll
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.models import ActionRule, McpServer
from mcp_servers.registry import services
from mcp_servers.registry.scopes.lists import export_servers
from mcp_servers.registry.specs import target_label
from mcp_servers.registry.trace import sink
from tests.factories import Tenant
from tests.fakes.klavis import KEY, FakeKlavis
from tests.mcp_servers.factories import a_request, tool_of
from tests.mcp_servers.klavis.conftest import install, make_due
from workspaces.models import IdempotentRequest

HOME = "/w/acme/servers/klavis/"


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def test_setting_the_account_up(tenant: Tenant, provider: FakeKlavis) -> None:
    """Ours: saved and tried at once; the key is written and never read back."""
    client = tenant.client("admin")
    before = text_of(client, HOME)
    assert "Klavis is not set up" in before
    assert "lg:grid-cols-2" not in before  # nothing stands beside the account
    body = {"base_url": provider.origin, "api_key": KEY, "dialect": "auto", "is_active": "on"}
    page = client.post(f"{HOME}save/", body, follow=True).content.decode()
    assert "Klavis offers 3 services." in page
    assert "Key stored" in page
    assert KEY not in page
    kept = client.post(f"{HOME}save/", {**body, "api_key": ""}, follow=True).content.decode()
    assert "Klavis offers 3 services." in kept
    provider.key = "another"
    html = client.post(f"{HOME}test/", follow=True).content.decode()
    assert "refused the API key" in html
    wrong = client.post(f"{HOME}save/", {**body, "base_url": "ftp://x/"})
    assert wrong.status_code == 422
    assert "not a plain" in wrong.content.decode()


def test_a_key_that_is_refused_does_not_replace_one_that_works(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1313: neither on the page nor over REST. While the provider is away, a new one is stored all the same."""
    client = tenant.client("admin")
    body = {
        "base_url": provider.origin,
        "api_key": "mistyped",
        "dialect": "auto",
        "is_active": "on",
    }

    def stored() -> tuple[str, str]:
        row = KlavisAccount.objects.for_workspace(tenant.workspace).get()
        assert row.api_key is not None
        return row.api_key.reveal("test"), row.problem

    page = client.post(f"{HOME}save/", body)
    assert page.status_code == 422
    assert "the stored one stays" in page.content.decode()
    assert stored() == (KEY, "")
    answer = client.patch(
        "/api/hosted-servers/account/",
        {"api_key": "mistyped"},
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )
    assert answer.status_code == 422
    assert "api_key" in str(answer.json())
    assert stored() == (KEY, "")
    provider.key = "the-new-one"
    assert client.post(f"{HOME}save/", {**body, "api_key": "the-new-one"}).status_code == 302
    assert stored()[0] == "the-new-one"
    provider.fail("GET", "/mcp-server/servers", status=500, times=99)
    assert client.post(f"{HOME}save/", {**body, "api_key": "another"}).status_code == 302
    assert stored()[0] == "another"


def test_from_the_catalogue_to_ready(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: install, the sign-in's address, the page that goes on by itself, the server, uninstall."""
    client = tenant.client("admin")
    listed = text_of(client, "/w/acme/catalogue/?q=gmail")
    assert "Hosted by Klavis" in listed
    answer = client.post("/w/acme/catalogue/klavis/gmail/install/", {"for": "workspace"})
    assert answer.status_code == 302
    page = text_of(client, answer["Location"])
    assert "/oauth/gmail/authorize?instance_id=" in page
    assert "every 3s" in page
    provider.only().is_signed_in = True
    KlavisInstance.objects.for_workspace(tenant.workspace).update(next_poll_at=timezone.now())
    card = client.post(f"{answer['Location']}poll/").content.decode()
    assert "Ready" in card
    assert "every 3s" not in card
    assert "authorize" not in card
    assert "Klavis: Gmail" in text_of(client, "/w/acme/servers/")
    instance = KlavisInstance.objects.for_workspace(tenant.workspace).get()
    client.post(f"{HOME}{instance.pk}/uninstall/")
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()


def test_what_a_member_sees(tenant: Tenant, account: KlavisAccount) -> None:
    """SEC-117: that the workspace's is there; never where its sign-in goes, and no button that is not theirs."""
    instance = install(tenant, "Gmail")
    client = tenant.client("member")
    for path in (HOME, f"{HOME}{instance.pk}/", f"{HOME}{instance.pk}/card/"):
        page = text_of(client, path)
        assert "Gmail" in page
        assert "authorize" not in page
        assert "every 3s" not in page
        assert "Uninstall" not in page
        assert "API key" not in page
    for verb in ("poll", "sign-in", "credential", "uninstall", "services"):
        assert client.post(f"{HOME}{instance.pk}/{verb}/", {"secret": "x"}).status_code == 403
    for verb in ("read-only", "rest"):
        assert client.post(f"{HOME}{instance.pk}/{verb}/", {"is_on": "on"}).status_code == 403
    for path in ("save/", "test/", "remove/", "strata/"):
        assert client.post(f"{HOME}{path}", {"base_url": "https://x/"}).status_code == 403


def test_somebody_elses_own_is_nobody_elses(tenant: Tenant, account: KlavisAccount) -> None:
    """SEC-117: an administrator sees that it exists and can uninstall it, and nothing more."""
    tenant.allow_personal_servers()
    own = install(tenant, "Gmail", "member", for_workspace=False)
    client = tenant.client("admin")
    page = text_of(client, HOME)
    assert tenant.member.email in page
    assert "authorize" not in page
    for verb in ("", "card/"):
        assert client.get(f"{HOME}{own.pk}/{verb}").status_code == 404
    for verb in ("poll", "sign-in", "credential"):
        assert client.post(f"{HOME}{own.pk}/{verb}/").status_code == 404
    assert "authorize" in text_of(tenant.client("member"), f"{HOME}{own.pk}/")
    client.post(f"{HOME}{own.pk}/uninstall/")
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()


def test_rules_on_actions(tenant: Tenant, installed: KlavisInstance) -> None:
    """Ours: set, shown and taken back."""
    client, path = tenant.client("admin"), f"{HOME}{installed.pk}/"
    client.post(f"{path}actions/", {"action": "send", "service": "gmail", "effect": "deny"})
    rule = ActionRule.objects.for_workspace(tenant.workspace).get()
    page = text_of(client, path)
    assert "gmail / send" in page
    assert "Refused" in page
    refused = client.post(f"{path}actions/", {"action": "", "effect": "deny"}, follow=True)
    assert "Name the action" in refused.content.decode()
    client.post(f"{path}actions/{rule.pk}/remove/")
    assert not ActionRule.objects.for_workspace(tenant.workspace).exists()


def test_deletions_that_are_still_to_be_made(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: administrators see them, and why; and may give one up."""
    provider.fail("DELETE", "/", status=500, times=99)
    installing.uninstall(instance=installed, actor=tenant.actor("admin"))
    make_due(tenant)
    row = KlavisRemoval.objects.for_workspace(tenant.workspace).get()
    from mcp_servers.klavis.tasks import remove_at_klavis

    remove_at_klavis(str(row.workspace_id), str(row.pk))
    page = text_of(tenant.client("admin"), HOME)
    assert "Still to be deleted at Klavis" in page
    assert "Tried 1 time." in page
    assert "Still to be deleted" not in text_of(tenant.client("member"), HOME)
    path = f"{HOME}removals/{row.pk}/forget/"
    assert tenant.client("member").post(path).status_code == 403
    tenant.client("admin").post(path)
    assert not KlavisRemoval.objects.for_workspace(tenant.workspace).exists()


def test_nobody_says_where_a_hosted_server_is(tenant: Tenant, installed: KlavisInstance) -> None:
    """SEC-117: its settings have no address, and none can be given by any way."""
    client = tenant.client("admin")
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    page = text_of(client, f"/w/acme/servers/{server.pk}/settings/")
    assert 'name="url"' not in page
    assert "Klavis runs this server" in page
    for draft in (
        services.ServerDraft(url="https://evil.example.org/mcp"),
        services.ServerDraft(headers={"X-A": "b"}),
        services.ServerDraft(transport="sse"),
    ):
        with pytest.raises(Exception, match="provider sets"):
            services.update_server(server=server, draft=draft, actor=tenant.actor("admin"))
    renamed = services.update_server(
        server=server, draft=services.ServerDraft(name="Mail"), actor=tenant.actor("admin")
    )
    assert renamed.name == "Mail"
    assert target_label(renamed) == "Klavis: Gmail"


def stored_texts() -> str:
    """Everything that stands in the database, as it stands there."""
    texts = []
    with connection.cursor() as cursor:
        for model in apps.get_models():
            if model._meta.managed and not model._meta.proxy:
                cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
                texts.append(str(cursor.fetchall()))
    return "\n".join(texts)


def test_the_url_is_a_secret_everywhere(
    tenant: Tenant,
    installed: KlavisInstance,
    provider: FakeKlavis,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEC-117: swept from tables, logs, pages, REST, exports, traces and errors, also when things go wrong."""
    from mcp_servers.client.connections import runtime
    from mcp_servers.client.connections.hooks import hooks

    caplog.set_level(logging.INFO)
    messages: list[TraceRecord] = []
    monkeypatch.setattr(hooks, "traced", messages.extend)
    hosted = provider.only()
    secret, remote_id = hosted.secret, hosted.id
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    seen: list[str] = []
    services.test_connection(server=server, actor=tenant.actor("admin"))
    call = a_request(tenant, tool_of(server, "search"), {"query": "x"}, can_ask=True)
    with pytest.raises(ApprovalMissing) as caught:
        async_to_sync(call_tool)(call)
    seen.append(repr(caught.value))
    provider.instances.clear()
    report = services.test_connection(server=server, actor=tenant.actor("admin"))
    assert not report.ok
    seen.append(str(report))
    provider.instances[remote_id] = hosted
    services.test_connection(server=server, actor=tenant.actor("admin"))
    runtime.shutdown(2.0)
    assert sink.store(messages)
    client = tenant.client("owner")
    server_path = f"/w/acme/servers/{server.pk}/"
    pages = (
        *("/w/acme/servers/", server_path, f"{server_path}settings/", f"{server_path}trace/"),
        *(HOME, f"{HOME}{installed.pk}/", "/w/acme/catalogue/", "/w/acme/audit/"),
    )
    seen += [text_of(client, path) for path in pages]
    headers = {"X-Workspace": "acme"}
    for path in (
        *("servers/", f"servers/{server.pk}/", "server-lists/export/", "trace/"),
        f"servers/{server.pk}/connections/",
    ):
        answer = client.get(f"/api/{path}", headers=headers)
        assert answer.status_code == 200, path
        seen.append(answer.content.decode())
    exported = export_servers(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"))
    assert server.name not in exported["mcpServers"]
    seen += [json.dumps(exported), caplog.text, stored_texts(), repr(server), str(server)]
    for text in seen:
        for hidden in (secret, remote_id, KEY):
            assert hidden not in text, text[max(0, text.find(hidden) - 200) :][:500]


def test_hosted_servers_over_rest(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """SEC-117: programs do what their person may, and see where a sign-in goes only if it is theirs."""
    headers = {"X-Workspace": "acme"}
    instance = install(tenant, "Gmail")
    admin, member = tenant.client("admin"), tenant.client("member")
    path = f"/api/hosted-servers/{instance.pk}/"
    (seen,) = admin.get("/api/hosted-servers/", headers=headers).json()
    assert seen["state"] == "waiting_for_sign_in"
    assert seen["windows"][0]["url"].startswith(provider.origin)
    assert member.get(path, headers=headers).json()["windows"] == []
    for verb in ("poll/", "sign-in/"):
        assert member.post(f"{path}{verb}", headers=headers).status_code == 403
    assert member.delete(path, headers=headers).status_code == 403
    keyed: Any = {
        "data": {},
        "content_type": "application/json",
        "headers": {**headers, "Idempotency-Key": "once"},
    }
    first = admin.post(f"{path}sign-in/", **keyed).json()
    assert first["windows"]
    kept = IdempotentRequest.objects.for_workspace(tenant.workspace).get()
    assert (kept.body or {})["windows"] == []
    assert admin.post(f"{path}sign-in/", **keyed).json()["windows"] == []
    provider.only().is_signed_in = True
    KlavisInstance.objects.for_workspace(tenant.workspace).update(next_poll_at=timezone.now())
    ready = admin.post(f"{path}poll/", headers=headers).json()
    assert (ready["state"], ready["windows"]) == ("ready", [])
    changed = admin.patch(
        path, {"is_read_only": True}, content_type="application/json", headers=headers
    )
    assert changed.json()["is_read_only"]
    assert provider.only().is_read_only
    assert admin.delete(path, headers=headers).status_code == 204
    assert admin.get(path, headers=headers).status_code == 404


def test_the_account_over_rest(tenant: Tenant, provider: FakeKlavis, at_once: None) -> None:
    """SEC-293: administrators set it up, try, read, change and remove it; nobody reads the key, members nothing."""
    admin, member = tenant.client("admin"), tenant.client("member")
    path, headers = "/api/hosted-servers/account/", {"X-Workspace": "acme"}
    sent: Any = {"content_type": "application/json", "headers": headers}
    assert admin.get(path, headers=headers).status_code == 404
    made = admin.patch(path, {"base_url": provider.origin, "api_key": KEY}, **sent)
    assert made.status_code == 200
    assert (made.json()["has_key"], made.json()["services"]) == (True, 0)
    tried = admin.post(f"{path}test/", headers=headers).json()
    assert tried["ok"]
    assert tried["offers"] == 3
    off = admin.patch(path, {"is_active": False}, **sent).json()
    assert (off["is_active"], off["has_key"], off["base_url"]) == (False, True, provider.origin)
    for body, field in (
        ({"base_url": "nowhere"}, "base_url"),
        ({"api_key": "a b"}, "api_key"),
        ({"dialect": "klingon"}, "dialect"),
        ({"key": "x"}, "key"),
    ):
        refused = admin.patch(path, body, **sent)
        assert refused.status_code in {400, 422}
        assert field in str(refused.json())
    seen = admin.get(path, headers=headers)
    assert KEY not in seen.content.decode()
    assert member.get(path, headers=headers).status_code == 403
    assert member.patch(path, {"is_active": True}, **sent).status_code == 403
    assert member.post(f"{path}test/", headers=headers).status_code == 403
    assert member.delete(path, headers=headers).status_code == 403
    assert admin.delete(path, headers=headers).status_code == 204
    assert admin.get(path, headers=headers).status_code == 404


def test_the_window_of_a_sign_in_ends_at_a_page_that_closes_it(
    tenant: Tenant, account: KlavisAccount
) -> None:
    """SEC-293: the provider is told where to send the window, and anybody may see that page: it says nothing."""
    instance = install(tenant, "Gmail")
    page = text_of(tenant.client("admin"), f"{HOME}{instance.pk}/")
    assert "redirect_url=http%3A%2F%2F" in page
    ending = Client().get("/oauth/hosted/signed-in")
    assert ending.status_code == 200
    assert "data-closes" in ending.content.decode()


def test_the_provider_is_asked_for_each_person_only_so_often(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """Ours: one person cannot use up what the workspace's key may ask of the provider; what is there still shows."""
    instance = install(tenant, "Gmail")
    row, actor = f"{HOME}{instance.pk}/", tenant.actor("admin")
    for _ in range(MOST_HOSTED):
        count_hosted(actor)
    for _ in range(MOST_POLLS):
        count_poll(actor)
    due = timezone.now()
    KlavisInstance.objects.for_workspace(tenant.workspace).update(next_poll_at=due)
    before = len(provider.requests)
    page, api = tenant.client("admin"), tenant.client("admin", headers={"x-workspace": "acme"})
    for path, body in (
        (f"{row}sign-in/", {}),
        (f"{row}credential/", {"secret": "x"}),
        (f"{row}read-only/", {"is_on": "on"}),
        (f"{row}services/", {"services": ["Gmail"]}),
        (f"{HOME}strata/", {"services": ["Gmail"]}),
        (f"{HOME}test/", {}),
    ):
        assert "Too many requests at once" in page.post(path, body, follow=True).content.decode(), (
            path
        )
    catalogue = "/w/acme/catalogue/klavis/weather/install/"
    assert page.post(catalogue, {"for": "workspace"}).status_code == 429
    assert "Gmail" in page.post(f"{row}poll/").content.decode()
    hosted, wanted = f"/api/hosted-servers/{instance.pk}/", {"source": "klavis", "slug": "weather"}
    as_json = "application/json"
    answers = [
        api.post(f"{hosted}sign-in/"),
        api.post(f"{hosted}poll/"),
        api.patch(hosted, {"is_read_only": True}, content_type=as_json),
        api.post(
            "/api/catalogue/install/", {**wanted, "for_workspace": True}, content_type=as_json
        ),
    ]
    assert [answer.status_code for answer in answers] == [429] * 4
    assert len(provider.requests) == before
    count_hosted(tenant.actor("owner"))  # others are not held up
