"""Servers that people sign in to, as forms, programs and lists put them: what is kept, what is dropped, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from mcp_servers.models import AccountUse, AuthType, McpServer
from mcp_servers.registry.scopes import lists
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server

URL = "https://mail.example.org/mcp"


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    return http_server(
        tenant,
        URL,
        name="mail",
        auth_type=AuthType.OAUTH,
        auth={"client_id": "our-id", "client_secret": "our-secret"},
        oauth_scope="mail.read",
        is_active=False,
    )


def client_of(server: McpServer) -> dict[str, Any]:
    server.refresh_from_db()
    return server.auth_config.reveal_json("test") if server.auth_config else {}


def save(client: Client, server: McpServer, **changes: str) -> Any:
    """Post the settings as the page shows them, with some changes."""
    path = f"/w/acme/servers/{server.pk}/settings/"
    shown = client.get(path).context["form"]
    body = {name: shown[name].value() for name in shown.fields}
    plain = {name: "" if value is None else value for name, value in body.items()}
    kept = {name: value for name, value in plain.items() if value is not False}
    return client.post(path, kept | changes)


def test_the_settings_show_the_client_and_never_its_secret(
    tenant: Tenant, server: McpServer, settings: Any
) -> None:
    """SEC-93: the client's id and the addresses to register are shown; the secret is not."""
    text = tenant.client("admin").get(f"/w/acme/servers/{server.pk}/settings/").content.decode()
    assert "our-id" in text
    assert "our-secret" not in text
    for origin in settings.TRELLIS.public_origins:
        assert f"{origin}/oauth/mcp/{server.pk}/callback" in text


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, {"client_id": "our-id", "client_secret": "our-secret"}),
        ({"auth_secret": "new"}, {"client_id": "our-id", "client_secret": "new"}),
        ({"auth_name": "other"}, {"client_id": "other"}),
        ({"auth_name": ""}, {}),
        ({"auth_type": "none", "auth_name": ""}, {}),
    ],
)
def test_what_becomes_of_the_client(
    tenant: Tenant, server: McpServer, changes: dict[str, str], kept: dict[str, str]
) -> None:
    """SEC-99: left alone it stays; another id does not keep the old one's secret; an emptied one is gone."""
    answer = save(tenant.client("admin"), server, **changes)
    assert answer.status_code == 302, answer.context["form"].errors
    assert client_of(server) == kept


def test_whose_account_and_which_scopes(tenant: Tenant, server: McpServer) -> None:
    """Both are the form's to set; scopes that are none are refused."""
    client = tenant.client("admin")
    assert save(client, server, account_use="workspace", oauth_scope=" a  b ").status_code == 302
    server.refresh_from_db()
    assert (server.account_use, server.oauth_scope) == (AccountUse.WORKSPACE, "a b")
    assert save(client, server, oauth_scope='a"b').status_code == 422


def test_the_add_form_takes_sign_in_without_a_client(tenant: Tenant) -> None:
    """Nobody needs a client id: the platform introduces itself."""
    body = {"name": "mail", "url": URL, "auth_type": "oauth", "protocol": "auto"}
    answer = tenant.client("admin").post("/w/acme/servers/add/", body)
    assert answer.status_code == 302
    (server,) = McpServer.objects.for_workspace(tenant.workspace)
    assert (server.auth_type, server.account_use) == (AuthType.OAUTH, AccountUse.USER)
    assert client_of(server) == {}


def test_ones_own_server_is_used_with_ones_own_account(tenant: Tenant) -> None:
    """SEC-53: whatever is asked for."""
    tenant.allow_personal_servers()
    client = tenant.client("member", headers={"x-workspace": "acme"})
    body = {"name": "mine", "url": URL, "auth_type": "oauth", "account_use": "workspace"}
    answer = client.post("/api/servers/personal/", body, content_type="application/json")
    assert answer.status_code == 201
    assert answer.json()["account_use"] == "user"


def test_programs_set_it_over_rest(tenant: Tenant) -> None:
    """The client's id and secret go in and never come out; without a person both are needed."""
    client = tenant.client("admin", headers={"x-workspace": "acme"})

    def post(**body: Any) -> Any:
        whole = {"name": "robot", "url": URL, "is_active": False, **body}
        return client.post("/api/servers/", whole, content_type="application/json")

    assert post(auth_type="oauth_client").status_code == 422
    assert post(auth_type="oauth_client", auth={"client_id": "x"}).status_code == 422
    assert post(auth_type="oauth", auth={"client_secret": "x"}).status_code == 422
    assert post(auth_type="oauth", auth={"token": "x"}).status_code == 422
    answer = post(auth_type="oauth_client", auth={"client_id": "x", "client_secret": "very-secret"})
    assert answer.status_code == 201
    assert "very-secret" not in answer.content.decode()
    assert answer.json()["has_credentials"] is True
    assert answer.json()["callback_urls"] == []
    answer = post(name="person", auth_type="oauth", oauth_scope="a b")
    assert answer.json()["callback_urls"]
    assert answer.json()["oauth_scope"] == "a b"


def test_a_list_carries_the_sign_in_and_not_the_client(tenant: Tenant, server: McpServer) -> None:
    """Out and in again: how people sign in goes along, the client's secret and id stay."""
    actor = tenant.actor("admin")
    exported = lists.export_servers(workspace_id=tenant.workspace.pk, actor=actor)
    entry = exported["mcpServers"]["mail"]
    assert "headers" not in entry
    assert entry["trellis"] == {"auth": "oauth", "accounts": "user", "scope": "mail.read"}
    import json

    text = json.dumps({"mcpServers": {"mail again": entry}})
    (added,) = lists.apply_import(workspace_id=tenant.workspace.pk, text=text, actor=actor)
    assert (added.auth_type, added.oauth_scope) == (AuthType.OAUTH, "mail.read")
    wrong = json.dumps({"mcpServers": {"x": {"url": URL, "trellis": {"auth": "magic"}}}})
    (planned,) = lists.preview_import(workspace_id=tenant.workspace.pk, text=wrong, actor=actor)
    assert planned.plan == "refuse"


def test_the_admins_form_sets_the_client(tenant: Tenant, server: McpServer) -> None:
    """In the admin as on the page: an id with its secret, shown nowhere."""
    client = tenant.client("owner")
    path = f"/admin/mcp_servers/mcpserver/{server.pk}/change/"
    page = client.get(path)
    assert "our-secret" not in page.content.decode()
    assert f"/oauth/mcp/{server.pk}/callback" in page.content.decode()
    form = page.context["adminform"].form
    body = {name: form[name].value() for name in form.fields}
    plain = {name: "" if value is None else value for name, value in body.items()}
    kept = {name: value for name, value in plain.items() if value is not False}
    answer = client.post(path, kept | {"auth_name": "new-id", "auth_secret": "new-secret"})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert client_of(server) == {"client_id": "new-id", "client_secret": "new-secret"}
