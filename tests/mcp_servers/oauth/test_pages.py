"""The pages of signing in: what they ask, where they send the browser, what they say afterwards, and what they never say."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from chat.models import Bud
from mcp_servers.models import AccountUse, AuthType, McpServer, OAuthAttempt, OAuthGrant
from mcp_servers.oauth.reasons import WORDS, Reason
from mcp_servers.registry import tasks
from mcp_servers.registry.limits import MOST_SIGN_INS
from tests.factories import Tenant
from tests.fakes.authorization import Issuer
from tests.fakes.protected_server import ProtectedServer
from tests.fakes.signing_in import granted
from tests.mcp_servers.factories import http_server

XSS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}{% debug %}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u202e<iframe srcdoc='<script>alert(1)</script>'>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
]


@pytest.fixture(autouse=True)
def no_counts() -> None:
    cache.clear()


@pytest.fixture
def server(tenant: Tenant, protected: ProtectedServer) -> McpServer:
    return http_server(tenant, protected.url, name="mail", auth_type=AuthType.OAUTH)


def page_of(server: McpServer) -> str:
    return f"/w/acme/servers/{server.pk}/sign-in/"


def callback_of(server: McpServer) -> str:
    return f"/oauth/mcp/{server.pk}/callback"


def begin(client: Client, server: McpServer) -> str:
    """Begin a sign-in as the page does; where the browser is sent."""
    answer = client.post(page_of(server))
    assert answer.status_code == 200, answer.content
    text = answer.content.decode()
    url = text.split("data-go")[0].rsplit('href="', 1)[1].split('"', 1)[0]
    return html.unescape(url)


def grants() -> list[OAuthGrant]:
    return list(OAuthGrant.objects.across_workspaces())


def attempts() -> int:
    return OAuthAttempt.objects.across_workspaces().count()


def test_a_person_connects_their_own_account(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """Asked in plain words, sent on, and told what came of it; the server's card has no more amber key for them."""
    client = tenant.client("member")
    text = client.get(page_of(server)).content.decode()
    for words in ("Sign in to mail", "127.0.0.1", "your own account"):
        assert words in text
    assert "Needs sign-in" in client.get("/w/acme/servers/").content.decode()
    url = begin(client, server)
    assert url.startswith(issuer.url)
    answer = client.get(callback_of(server), issuer.consent(url, "ada@example.com"))
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "You are connected to mail" in text
    assert "tools found" in text or "tool found" in text
    assert f'data-signed-in="{server.pk}"' in text
    (grant,) = grants()
    assert (grant.user, grant.server) == (tenant.member, server)
    assert "Needs sign-in" not in client.get("/w/acme/servers/").content.decode()
    # Another person still has to.
    assert "Needs sign-in" in tenant.client("auditor").get("/w/acme/servers/").content.decode()


def test_the_way_on_shows_host_and_scopes(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """The page between names the issuer's host and what is asked for; its link is http(s)."""
    text = tenant.client("member").post(page_of(server)).content.decode()
    assert urlsplit(issuer.url).netloc in text
    assert "mail.read" in text
    assert "data-go" in text


def test_a_page_answers_itself_only_when_one_of_ours_opened_it(
    tenant: Tenant, server: McpServer
) -> None:
    """SEC-22: another site's link asks; it cannot begin."""
    client = tenant.client("member")
    for site, begins in [("same-origin", True), ("cross-site", False), ("none", False)]:
        text = client.get(f"{page_of(server)}?now=1", headers={"sec-fetch-site": site}).content
        assert (b"data-begins" in text) is begins, site
    assert b"data-begins" not in client.get(f"{page_of(server)}?now=1").content


def test_the_workspaces_account_is_an_administrators_to_connect(
    tenant: Tenant, protected: ProtectedServer, issuer: Issuer
) -> None:
    """SEC-53: members are told who can."""
    shared = http_server(
        tenant,
        protected.url,
        name="shared",
        auth_type=AuthType.OAUTH,
        account_use=AccountUse.WORKSPACE,
    )
    member, admin = tenant.client("member"), tenant.client("admin")
    assert "An administrator connects it" in member.get(page_of(shared)).content.decode()
    assert member.post(page_of(shared)).status_code == 403
    assert "one account for all of" in admin.get(page_of(shared)).content.decode()
    assert "Connect workspace account" in admin.get("/w/acme/servers/").content.decode()
    back = issuer.consent(begin(admin, shared))
    assert admin.get(callback_of(shared), back).status_code == 200
    assert [grant.user for grant in grants()] == [None]
    assert "Needs sign-in" not in member.get("/w/acme/servers/").content.decode()


def test_a_cancel_and_a_failure_have_their_own_words(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """Nothing is stored, and the page says what happened."""
    client = tenant.client("member")
    issuer.accounts.denies = True
    answer = client.get(callback_of(server), issuer.consent(begin(client, server)))
    assert answer.status_code == 422
    assert html.escape(WORDS[Reason.CANCELLED]) in answer.content.decode()
    issuer.accounts.denies = False
    back = issuer.consent(begin(client, server))
    issuer.fail("token", error="invalid_grant", times=1)
    answer = client.get(callback_of(server), back)
    assert html.escape(WORDS[Reason.TOKEN_REFUSED]) in answer.content.decode()
    assert 'data-ok="no"' in answer.content.decode()
    issuer.metadata_overrides["code_challenge_methods_supported"] = ["plain"]
    answer = client.post(page_of(server))
    assert answer.status_code == 422
    assert html.escape(WORDS[Reason.NO_PKCE]) in answer.content.decode()
    assert grants() == []


def test_whoever_does_not_come_back_can_have_the_client_registered_again(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2652: an issuer that has forgotten a client shows it on its own page. The page waits then, and does not begin."""
    opened = {"sec-fetch-site": "same-origin"}
    for role, may in (("member", False), ("admin", True)):
        client = tenant.client(role)
        assert b"does not know the client" not in client.get(page_of(server)).content
        before = begin(client, server)
        text = client.get(f"{page_of(server)}?now=1", headers=opened).content.decode()
        assert "does not know the client" in text
        assert ('value="again"' in text, "data-begins" in text) == (may, False), role
        answer = client.post(page_of(server), {"register": "again"})
        assert answer.status_code == (200 if may else 403)
    issued = parse_qs(urlsplit(before).query)["client_id"][0]
    assert issued not in answer.content.decode()
    assert len(issuer.at("register")) == 2
    # Another one today would bring nothing.
    answer = client.post(page_of(server), {"register": "again"})
    assert html.escape(WORDS[Reason.REGISTRATION_UNKNOWN]) in answer.content.decode()
    assert len(issuer.at("register")) == 2


@pytest.mark.parametrize("field", ["error", "error_description", "state", "iss", "code"])
def test_nothing_that_comes_back_is_shown(tenant: Tenant, server: McpServer, field: str) -> None:
    """SEC-50: a corpus of markup in every parameter, with a strict policy around it."""
    client = tenant.client("member")
    for text in XSS:
        params = {"state": "unknown", "error": "access_denied", field: text}
        answer = client.get(callback_of(server), params)
        assert answer.status_code == 422
        body = answer.content.decode()
        assert text not in body
        assert html.escape(text) not in body
        assert "alert(1)" not in body
        assert "7*7" not in body
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_a_stranger_at_the_callback_begins_again(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """SEC-44: logged out, the code is dropped with the address; after the login the page says so; nothing is stored."""
    client = tenant.client("member")
    back = issuer.consent(begin(client, server))
    answer = Client().get(callback_of(server), back)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")
    assert back["code"] not in answer["Location"]
    assert back["state"] not in answer["Location"]
    (path,) = parse_qs(urlsplit(answer["Location"]).query)["next"]
    after = client.get(path)
    assert after.status_code == 422
    assert "begin again" in after.content.decode()
    assert grants() == []
    assert issuer.token_requests("authorization_code") == []


@pytest.mark.parametrize("doubled", ["state", "code", "iss"])
def test_a_parameter_that_comes_twice_is_no_answer(
    tenant: Tenant, server: McpServer, issuer: Issuer, doubled: str
) -> None:
    """SEC-44: an address that says a thing twice is void, RFC 6749, section 3.1; dropping both would hide an issuer."""
    client = tenant.client("member")
    back = {"iss": issuer.url, **issuer.consent(begin(client, server))}
    query = urlencode([*back.items(), (doubled, back[doubled])])
    assert client.get(f"{callback_of(server)}?{query}").status_code == 422
    assert grants() == []


def test_signing_in_too_often_is_stopped(tenant: Tenant, server: McpServer) -> None:
    """Ours: a person's page reaches out to other hosts only so often, and says so."""
    from mcp_servers.registry import limits

    client = tenant.client("member")
    for _ in range(MOST_SIGN_INS):
        limits.count_sign_in(tenant.actor("member"), "begun")
    answer = client.post(page_of(server))
    assert answer.status_code == 429
    assert "Too many requests at once" in answer.content.decode()
    assert attempts() == 0


def test_the_clients_document_tells_nothing_of_the_server(
    tenant: Tenant, server: McpServer, settings: Any
) -> None:
    """The client's id is its own address; it lists where people come back to; unknown servers have none."""
    answer = Client().get(f"/oauth/mcp/{server.pk}/client.json")
    body = answer.json()
    assert body["redirect_uris"] == [
        f"{origin}{callback_of(server)}" for origin in settings.TRELLIS.public_origins
    ]
    assert body["token_endpoint_auth_method"] == "none"
    assert body["application_type"] == "web"
    assert set(body["grant_types"]) == {"authorization_code", "refresh_token"}
    for secret in ("mail", server.url, "acme"):
        assert secret not in answer.content.decode()
    missing = Client().get("/oauth/mcp/00000000-0000-7000-8000-000000000000/client.json")
    assert missing.status_code == 404


def test_my_connections_shows_mine_alone(
    tenant: Tenant, server: McpServer, protected: ProtectedServer
) -> None:
    """SEC-53: server, account, scopes and state; of others only the administrator's page tells, and never a token."""
    ada = granted(server, protected, tenant.member, "ada@example.com")
    eve = granted(
        server, protected, tenant.admin, "eve@example.com", lost_reason="It was taken back."
    )
    member, admin = tenant.client("member"), tenant.client("admin")
    text = member.get("/w/acme/connections/").content.decode()
    for words in ("mail", "ada@example.com", "mail.read", "Connected", "Sign in again"):
        assert words in text
    assert "eve@example.com" not in text
    text = admin.get("/w/acme/connections/").content.decode()
    assert "It was taken back." in text
    assert "ada@example.com" not in text
    assert (
        "You can connect" in tenant.client("auditor").get("/w/acme/connections/").content.decode()
    )
    people = f"/w/acme/servers/{server.pk}/people/"
    text = admin.get(people).content.decode()
    assert tenant.member.email in text
    assert member.get(people).status_code == 403
    pages = text + member.get("/w/acme/connections/").content.decode()
    pages += admin.get("/w/acme/servers/").content.decode()
    for grant in (ada, eve):
        for token in grant.tokens.reveal_json("looking for it").values():
            assert token not in pages
    assert "1 connected" in admin.get("/w/acme/servers/").content.decode()


def test_disconnecting(tenant: Tenant, server: McpServer, protected: ProtectedServer) -> None:
    """SEC-54: one's own by oneself, anybody's by an administrator, another's by nobody else."""
    ada = granted(server, protected, tenant.member)
    bob = granted(server, protected, tenant.auditor, "bob@example.com")
    member, admin = tenant.client("member"), tenant.client("admin")
    assert member.post(f"/w/acme/connections/{bob.pk}/revoke/").status_code == 404
    assert member.post(f"/w/acme/connections/{ada.pk}/revoke/").status_code == 302
    answer = admin.post(f"/w/acme/connections/{bob.pk}/revoke/", {"back": "people"})
    assert answer["Location"].endswith("/people/")
    assert grants() == []


def test_connections_over_rest(
    tenant: Tenant, server: McpServer, protected: ProtectedServer
) -> None:
    """The same as the pages, for programs."""
    ada = granted(server, protected, tenant.member)
    headers = {"x-workspace": "acme"}
    member, admin = (
        tenant.client("member", headers=headers),
        tenant.client("admin", headers=headers),
    )
    (connection_row,) = member.get("/api/connections/").json()
    assert (connection_row["id"], connection_row["state"], connection_row["account"]) == (
        str(ada.pk),
        "connected",
        "ada@example.com",
    )
    assert "token" not in str(connection_row)
    assert admin.get("/api/connections/").json() == []
    (row,) = admin.get(f"/api/servers/{server.pk}/people/").json()
    assert row["person"] == tenant.member.email
    assert member.get(f"/api/servers/{server.pk}/people/").status_code == 403
    assert member.delete(f"/api/connections/{ada.pk}/").status_code == 204
    assert grants() == []


def test_the_admin_shows_grants_without_tokens(
    tenant: Tenant, server: McpServer, protected: ProtectedServer
) -> None:
    """SEC-51: who, since when, which scopes; and an action that disconnects."""
    grant = granted(server, protected, tenant.member)
    admin = tenant.client("owner")
    base = "/admin/mcp_servers/oauthgrant/"
    text = admin.get(base).content.decode()
    text += admin.get(f"{base}{grant.pk}/change/").content.decode()
    assert tenant.member.email in text
    for token in grant.tokens.reveal_json("looking for it").values():
        assert token not in text
    body = {"action": "disconnect", "_selected_action": [str(grant.pk)]}
    assert tenant.member.email in admin.post(base, body).content.decode()
    assert grants() != []
    admin.post(base, {**body, "confirmed": "yes"})
    assert grants() == []


def test_a_chats_servers_say_where_to_sign_in(
    tenant: Tenant, server: McpServer, protected: ProtectedServer
) -> None:
    """Each person's own state and link; where an administrator connects the account, only administrators get one."""
    shared = http_server(
        tenant,
        protected.url,
        name="shared",
        auth_type=AuthType.OAUTH,
        account_use=AccountUse.WORKSPACE,
    )
    granted(server, protected, tenant.admin)
    bud = Bud.objects.create(
        workspace=tenant.workspace,
        slug="bud",
        name="Bud",
        mcp_config={"servers": [str(server.pk), str(shared.pk)]},
    )

    def shown_to(role: str) -> dict[str, tuple[str, str | None]]:
        client = tenant.client(role, headers={"x-workspace": "acme"})
        servers = client.get(f"/api/buds/{bud.pk}/servers/").json()["servers"]
        return {one["name"]: (one["code"], one["sign_in_url"]) for one in servers}

    assert shown_to("member") == {
        "mail": ("auth_required", page_of(server)),
        "shared": ("auth_required", None),
    }
    assert shown_to("admin")["mail"][1] is None
    assert shown_to("admin")["shared"] == ("auth_required", page_of(shared))


@pytest.mark.parametrize("auth_type", ["oauth", "none"])
def test_a_server_that_nobody_has_signed_in_to_is_up(
    tenant: Tenant, protected: ProtectedServer, auth_type: str
) -> None:
    """Ours: it answered when it was added and when it was tested, also where it was added without saying how."""
    client = tenant.client("admin")
    form = {"name": "mail", "url": protected.url, "auth_type": auth_type, "account_use": "user"}
    added = client.post("/w/acme/servers/add/", {**form, "transport": "auto", "protocol": "auto"})
    assert added.status_code == 302
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    tasks.look_first(str(tenant.workspace.pk), str(server.pk), str(tenant.admin.pk))
    card = client.post(f"/w/acme/servers/{server.pk}/test/").content.decode()
    assert "The last 2 checks" in card
    assert "100.0%" in card
    assert "in 0 ms" not in card
    server.refresh_from_db()
    assert server.state.status == "auth_required"


def test_credentials_that_are_refused_are_no_good_reading(
    tenant: Tenant, protected: ProtectedServer
) -> None:
    """Ours: what was entered for everybody does not serve any more, so nobody can use the server."""
    server = http_server(tenant, protected.url, auth_type="bearer", auth={"token": "old"})
    card = tenant.client("admin").post(f"/w/acme/servers/{server.pk}/test/").content.decode()
    assert "0.0%" in card
    assert "100.0%" not in card
