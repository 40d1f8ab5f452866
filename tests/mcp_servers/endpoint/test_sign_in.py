"""People sign in with other MCP clients: the official client does, and what is not in order gets nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl
from pytest_django.live_server_helper import LiveServer

from audit.models import AuditEntry
from mcp_servers.endpoint.offering import ASKS
from mcp_servers.endpoint.sign_in import grants
from mcp_servers.models import ClientSignIn, ClientToken, KnownClient, McpServer
from tests.factories import Tenant, UserFactory, make_tenant
from tests.mcp_servers.endpoint.client import McpClient, token_for
from tests.mcp_servers.endpoint.official import use_notes
from tests.mcp_servers.endpoint.signing_in import (
    CHALLENGE,
    ORIGIN,
    REDIRECT,
    SigningIn,
    answer_of,
    hidden_fields,
    let_clients_in,
    register,
)
from tests.mcp_servers.factories import demo_server, looked_at
from tests.patience import PATIENCE
from workspaces.models import Membership, User

pytestmark = pytest.mark.django_db(transaction=True)


class Memory(TokenStorage):
    """What a client keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Somebody whose browser a client opens, and who lets it in."""

    def __init__(self, tenant: Tenant) -> None:
        self.browser = tenant.client("member")
        self.location = ""

    async def open(self, address: str) -> None:
        await asyncio.to_thread(self._allow, address)

    def _allow(self, address: str) -> None:
        parts = urlsplit(address)
        headers = {"host": parts.netloc}
        page = self.browser.get(f"{parts.path}?{parts.query}", headers=headers)
        assert page.status_code == 200, page.content
        sent = {**hidden_fields(page.content.decode()), "answer": "allow", "reach": "mcp:call"}
        self.location = self.browser.post(parts.path, sent, headers=headers)["Location"]

    async def answer(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(answer_of(self.location))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_signs_in(
    tenant: Tenant, notes: McpServer, live_server: LiveServer, mode: Any
) -> None:
    """REL-1100: over HTTP, with nothing but the address; it finds out where, registers, asks, and calls a tool."""
    let_clients_in(tenant)
    url = f"{live_server.url}/w/{tenant.workspace.slug}/mcp/"
    memory, person = Memory(), Person(tenant)
    auth = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Rake", redirect_uris=[AnyUrl(REDIRECT)]),
        memory,
        person.open,
        person.answer,
    )

    use_notes(url, httpx2.AsyncClient(auth=auth, timeout=PATIENCE), mode)
    assert memory.tokens is not None
    assert memory.tokens.refresh_token
    sign_in = ClientSignIn.objects.for_workspace(tenant.workspace).get()
    assert (sign_in.user, sign_in.client_name) == (tenant.member, "Rake")
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.finished")
    assert entry.details["client"] == "Rake"
    assert (entry.sign_in, entry.token_id) == ("client", sign_in.pk)


def test_a_sign_in_gives_tokens_and_they_open_the_endpoint(
    tenant: Tenant, notes: McpServer
) -> None:
    """REL-1100, SEC-532: step by step; only hashes are kept."""
    begun = SigningIn.begun(tenant)
    answered = begun.answer()
    query = answer_of(answered["Location"])
    assert answered["Location"].startswith(f"{REDIRECT}?")
    assert (query["state"], query["iss"]) == ("state-of-client", ORIGIN)
    tokens = begun.exchange(query["code"]).json()
    assert (tokens["token_type"], tokens["scope"], tokens["expires_in"]) == (
        "Bearer",
        "mcp:call",
        3600,
    )
    client = McpClient(tenant, tokens["access_token"])
    assert "notes__list_notes" in client.names()
    kept = str(list(ClientToken.objects.for_workspace(tenant.workspace).values()))
    for secret in (query["code"], tokens["access_token"], tokens["refresh_token"]):
        assert secret not in kept


def test_an_endpoint_says_where_people_sign_in(tenant: Tenant) -> None:
    """REL-1101: without a token, with a bad one, and the same for workspaces that do not exist."""
    slug = tenant.workspace.slug
    about = f"{ORIGIN}/.well-known/oauth-protected-resource/w/{slug}/mcp/"
    answer = Client().post(f"/w/{slug}/mcp/", "{}", content_type="application/json")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == (
        f'Bearer realm="Trellis", resource_metadata="{about}", scope="mcp:read mcp:call"'
    )
    bad = McpClient(tenant, "trc_nothing").post("tools/list")
    assert bad.status_code == 401
    assert 'error="invalid_token"' in bad["WWW-Authenticate"]
    for path in (about.removeprefix(ORIGIN), about.removeprefix(ORIGIN)[:-1]):
        body = Client().get(path).json()
        assert body["resource"] == f"{ORIGIN}/w/{slug}/mcp/"
        assert body["authorization_servers"] == [ORIGIN]
        assert body["scopes_supported"] == ["mcp:read", "mcp:call"]
    nowhere = Client().get("/.well-known/oauth-protected-resource/w/nowhere/mcp/")
    assert nowhere.status_code == 200
    server = Client().get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == ORIGIN
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["client_id_metadata_document_supported"] is True
    assert server["authorization_response_iss_parameter_supported"] is True
    for name in ("authorization", "token", "registration", "revocation"):
        assert server[f"{name}_endpoint"].startswith(f"{ORIGIN}/oauth/")


def test_opening_the_address_gives_nothing(tenant: Tenant) -> None:
    """SEC-114: a link that somebody sends shows a page, which no other page can frame; the person's own answer is needed."""
    begun = SigningIn.begun(tenant)
    page = begun.page()
    text = page.content.decode()
    assert page.status_code == 200
    assert "Rake" in text
    assert "127.0.0.1" in text
    assert tenant.workspace.name in text
    assert "frame-ancestors 'none'" in page["Content-Security-Policy"]
    assert "form-action 'self' http://127.0.0.1:3912" in page["Content-Security-Policy"]
    assert page["X-Frame-Options"] == "DENY"
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()
    stranger = Client().get("/oauth/authorize", begun.params())
    assert stranger.status_code == 302
    assert stranger["Location"].startswith("/accounts/login/?next=/oauth/authorize")


def test_an_answer_is_of_the_page_that_was_shown(tenant: Tenant) -> None:
    """SEC-114: not of another browser, another person or another request, and not without the page."""
    begun = SigningIn.begun(tenant)
    sent = {**hidden_fields(begun.page().content.decode()), "answer": "allow", "reach": "mcp:call"}
    without = {name: value for name, value in sent.items() if name != "page"}
    other_browser = SigningIn(tenant, begun.client_id)
    other_person = SigningIn(tenant, begun.client_id, "admin")
    tries = [
        (begun.browser, without),
        (begun.browser, {**sent, "state": "another"}),
        (begun.browser, {**sent, "code_challenge": CHALLENGE[::-1]}),
        (begun.browser, {**sent, "reach": "audit:read"}),
        (other_browser.browser, sent),
        (other_person.browser, sent),
    ]
    for browser, given in tries:
        answer = browser.post("/oauth/authorize", given)
        assert answer.status_code == 200
        assert "Nothing was allowed" in answer.content.decode()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = begun.browser.cookies
    forged = {name: value for name, value in sent.items() if name != "csrfmiddlewaretoken"}
    assert strict.post("/oauth/authorize", forged).status_code == 403
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()
    assert begun.browser.post("/oauth/authorize", sent).status_code == 302


@pytest.mark.parametrize(
    "redirect",
    [
        "http://127.0.0.1:3912/callback/",
        "http://127.0.0.1:3912/callback?a=b",
        "http://127.0.0.1:3912/Callback",
        "http://localhost:3912/callback",
        "https://127.0.0.1:3912/callback",
        "http://127.0.0.1:3912@evil.example/callback",
        "http://evil.example/callback",
        "https://app.example:444/cb",
        "https://app.example/cb#",
        "https://APP.example/cb",
        None,
    ],
)
def test_an_altered_address_gets_no_code(tenant: Tenant, redirect: str | None) -> None:
    """SEC-114: the page says so, and leads nowhere."""
    begun = SigningIn.begun(tenant)
    body = register("Rake", REDIRECT, "https://app.example/cb").json()
    page = begun.page(client_id=body["client_id"], redirect_uri=redirect)
    assert page.status_code == 400
    assert "Location" not in page
    assert "evil" not in page.content.decode()
    assert "Back to the client" not in page.content.decode()


def test_a_program_on_the_computer_may_take_any_port(tenant: Tenant) -> None:
    """SEC-533: and gets its code there."""
    begun = SigningIn.begun(tenant)
    begun.redirect = "http://127.0.0.1:50999/callback"
    assert begun.answer()["Location"].startswith("http://127.0.0.1:50999/callback?code=")


@pytest.mark.parametrize(
    "redirect",
    [
        "http://app.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://app.example/cb#x",
        "https://user@app.example/cb",
        "https:///cb",
        "nothing",
        "http://127.0.0.1:99999/cb",
        "https://app.example/" + "x" * 500,
        "https://app.example;script-src/cb",
        "https://*/cb",
    ],
)
def test_a_client_names_only_safe_addresses(db: None, redirect: str) -> None:
    """SEC-533: encrypted ones, this computer, or a program's own scheme."""
    answer = register("Rake", redirect)
    assert answer.status_code == 400
    assert not KnownClient.objects.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_challenge_method": "plain"}, "code_challenge_method"),
        ({"code_challenge_method": None}, "code_challenge_method"),
        ({"code_challenge": None}, "code_challenge"),
        ({"code_challenge": "short"}, "code_challenge"),
        ({"response_type": "token"}, "response_type"),
        ({"resource": None}, "resource"),
        ({"resource": f"{ORIGIN}/w/acme/"}, "resource"),
        ({"resource": "http://evil.example/w/acme/mcp/"}, "resource"),
        ({"scope": "audit:read"}, "scope"),
    ],
)
def test_what_is_not_in_order_is_refused(
    tenant: Tenant, changed: dict[str, str | None], error: str
) -> None:
    """SEC-532: no page to answer on, and a way back to the client that tells it why."""
    page = SigningIn.begun(tenant).page(**changed)
    text = page.content.decode()
    assert page.status_code == 400
    assert error in text.lower()
    assert "Back to the client" in text
    assert "iss=" in text
    assert 'name="answer"' not in text


def test_an_id_that_no_database_takes_is_of_nobody(tenant: Tenant) -> None:
    """SEC-532: whoever asks is told so, also without a session."""
    begun = SigningIn(tenant, "no\x00body")
    assert begun.page().status_code == 400
    assert begun.ask_tokens(grant_type="refresh_token", refresh_token="trr_x").status_code == 401
    sent = {"client_id": begun.client_id, "token": "trr_x"}
    assert Client().post("/oauth/revoke", sent).status_code == 401


def test_a_code_serves_once_and_soon(tenant: Tenant) -> None:
    """SEC-532: for its client, its verifier, its address and its resource; a second use ends what it gave."""
    begun = SigningIn.begun(tenant)
    code = begun.code()
    for changed in (
        {"code_verifier": "w" * 64},
        {"redirect_uri": "http://127.0.0.1:1/callback"},
        {"resource": f"{ORIGIN}/w/other/mcp/"},
        {"client_id": register("Spade").json()["client_id"]},
        {"code": f"{code}x"},
        {"client_id": "nobody"},
    ):
        assert begun.exchange(**{"code": code, **changed}).status_code in (400, 401), changed
    tokens = begun.exchange(code).json()
    assert begun.exchange(code).json()["error"] == "invalid_grant"
    assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 401
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()
    late = begun.code()
    rows = ClientToken.objects.for_workspace(tenant.workspace)
    row = rows.get(kind="code")
    assert (row.expires_at - row.created_at) <= timedelta(seconds=61)
    rows.update(expires_at=row.created_at)
    assert begun.exchange(late).json()["error"] == "invalid_grant"


def test_refresh_tokens_rotate_and_a_second_use_ends_the_sign_in(tenant: Tenant) -> None:
    """SEC-534: whoever has the token besides the client loses it, and the log says so."""
    begun = SigningIn.begun(tenant)
    first = begun.tokens()
    second = begun.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert McpClient(tenant, first["access_token"]).post("tools/list").status_code == 401
    assert McpClient(tenant, second["access_token"]).post("tools/list").status_code == 200
    wide = begun.refresh(second["refresh_token"], scope="mcp:call audit:read")
    assert wide.json()["error"] == "invalid_scope"
    used_a_while_ago(tenant)
    assert begun.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert begun.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert McpClient(tenant, second["access_token"]).post("tools/list").status_code == 401
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert log.filter(action="mcp_client.reused").exists()
    assert log.get(action="mcp_client.ended").details["reason"] == "token used twice"


def test_a_refresh_that_comes_again_at_once_brings_the_same(tenant: Tenant) -> None:
    """SEC-564: for ten seconds, for the same client and scopes, and as long as the new token has not been used."""
    begun = SigningIn.begun(tenant)
    first = begun.tokens()
    second = begun.refresh(first["refresh_token"]).json()
    again = begun.refresh(first["refresh_token"]).json()
    assert 3580 <= again.pop("expires_in") <= second.pop("expires_in")
    assert again == second
    other = SigningIn(tenant, register("Spade").json()["client_id"])
    assert other.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    third = begun.refresh(second["refresh_token"]).json()
    assert McpClient(tenant, third["access_token"]).post("tools/list").status_code == 200
    assert begun.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert log.filter(action="mcp_client.reused").count() == 1
    assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.parametrize("case", ["late", "fewer scopes", "code"])
def test_nothing_else_comes_again(tenant: Tenant, case: str) -> None:
    """SEC-564: not after the ten seconds, not with other scopes, and no code."""
    begun = SigningIn.begun(tenant)
    code = begun.code()
    first = begun.exchange(code).json()
    if case == "code":
        answer = begun.exchange(code)
    else:
        assert begun.refresh(first["refresh_token"]).status_code == 200
        if case == "late":
            used_a_while_ago(tenant)
        scopes = {"scope": "mcp:read"} if case == "fewer scopes" else {}
        answer = begun.refresh(first["refresh_token"], **scopes)
    assert answer.status_code == 400
    if case != "fewer scopes":
        assert not ClientSignIn.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.postgresql
def test_two_windows_refresh_at_the_same_moment(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-564: over two connections, both having found the token unused: one pair of tokens, and both have it."""
    begun = SigningIn.begun(tenant)
    first = begun.tokens()
    both, find = threading.Barrier(2, timeout=PATIENCE), grants.find

    def found_by_both(*args: Any, **kwargs: Any) -> ClientToken | None:
        found = find(*args, **kwargs)
        both.wait()
        return found

    monkeypatch.setattr(grants, "find", found_by_both)
    with ThreadPoolExecutor(2) as windows:
        asked = [windows.submit(in_own_connection, begun, first) for _ in range(2)]
        one, other = (future.result(PATIENCE) for future in asked)
    monkeypatch.undo()
    assert [one["token_type"], other["token_type"]] == ["Bearer", "Bearer"]
    assert (one["access_token"], one["refresh_token"]) == (
        other["access_token"],
        other["refresh_token"],
    )
    rows = ClientToken.objects.for_workspace(tenant.workspace).filter(used_at=None)
    assert sorted(rows.values_list("kind", flat=True)) == ["access", "refresh"]
    assert McpClient(tenant, one["access_token"]).post("tools/list").status_code == 200
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert not log.filter(action="mcp_client.reused").exists()


def in_own_connection(begun: SigningIn, first: Mapping[str, Any]) -> Any:
    """One window's request, with a database connection of its thread."""
    try:
        return begun.refresh(first["refresh_token"]).json()
    finally:
        connection.close()


def used_a_while_ago(tenant: Tenant) -> None:
    """Refresh tokens that were used came more than ten seconds ago."""
    rows = ClientToken.objects.for_workspace(tenant.workspace).filter(used_at__isnull=False)
    rows.update(used_at=F("used_at") - grants.AGAIN_FOR - timedelta(seconds=1))


def test_a_token_is_good_for_one_endpoint_and_nothing_else(tenant: Tenant) -> None:
    """SEC-535: no other workspace of the same person, and nothing of REST."""
    begun = SigningIn.begun(tenant)
    token = begun.tokens()["access_token"]
    other = make_tenant("other")
    let_clients_in(other)
    Membership.objects.create(workspace=other.workspace, user=tenant.member, role="member")
    assert McpClient(tenant, token).post("tools/list").status_code == 200
    assert McpClient(other, token).post("tools/list").status_code == 401
    for path in ("/api/servers/", "/api/conversations/", "/api/tokens/", "/api/mcp-clients/"):
        answer = Client().get(path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, path


def test_a_client_may_be_let_read_only(tenant: Tenant, notes: McpServer) -> None:
    """SEC-113: the person chooses on the page, and fewer than was asked for."""
    begun = SigningIn.begun(tenant)
    tokens = begun.tokens(reach="mcp:read")
    assert tokens["scope"] == "mcp:read"
    assert "notes__write_note" not in McpClient(tenant, tokens["access_token"]).names()
    only = begun.page(scope="mcp:read").content.decode()
    assert "All tools" not in only


@pytest.mark.parametrize("trusts", [True, False])
def test_a_person_reads_how_many_tools_a_client_gets(tenant: Tenant, *, trusts: bool) -> None:
    """REL-1894: and how many of them would be refused, since nobody is there to approve."""
    server = demo_server(tenant, "notes", trusts_annotations=trusts, is_used_everywhere=True)
    looked_at(tenant, server)
    every = McpClient(tenant, token_for(tenant)).result("tools/list")["tools"]
    reading = McpClient(tenant, token_for(tenant, "mcp:read")).names()
    asking = [one for one in every if ASKS in one["description"]]
    words = f"Your tools here: {len(every)}. Just read: {len(reading)}. Ask you before they run: {len(asking)}."
    pages = [
        SigningIn.begun(tenant).page(),
        tenant.client("member").get(f"/w/{tenant.workspace.slug}/servers/clients/"),
    ]
    for page in pages:
        text = " ".join(page.content.decode().split())
        assert words in text
        assert "Other clients cannot ask" in text
    assert bool(reading) is trusts


def test_a_person_who_has_no_tools_reads_so_before_they_let_a_client_in(tenant: Tenant) -> None:
    """REL-1894."""
    assert "You have no tools here yet." in SigningIn.begun(tenant).page().content.decode()


def test_a_person_refuses(tenant: Tenant) -> None:
    """REL-1102: the client is told, and the log has it."""
    begun = SigningIn.begun(tenant)
    query = answer_of(begun.answer("refuse")["Location"])
    assert (query["error"], query["state"], query["iss"]) == (
        "access_denied",
        "state-of-client",
        ORIGIN,
    )
    assert "code" not in query
    log = AuditEntry.objects.for_workspace(tenant.workspace)
    assert log.get(action="mcp_client.refused").details["name"] == "Rake"


def test_the_page_says_why_a_client_cannot_come_in(tenant: Tenant) -> None:
    """REL-1102: where the workspace lets none in, and where the person is no member; and what to do."""
    begun = SigningIn.begun(tenant)
    let_clients_in(tenant, is_on=False)
    page = begun.page()
    assert page.status_code == 403
    assert "Ask an owner" in page.content.decode()
    owner = SigningIn(tenant, begun.client_id, "owner").page()
    assert "You can allow it" in owner.content.decode()
    let_clients_in(tenant)
    for slug in ("nowhere", "acme"):
        begun.browser.force_login(_nobody(), backend=settings.AUTHENTICATION_BACKENDS[0])
        page = begun.page(resource=f"{ORIGIN}/w/{slug}/mcp/")
        text = page.content.decode()
        assert page.status_code == 403
        assert "is not a member" in text
        assert tenant.workspace.name not in text


def _nobody() -> Any:
    found = User.objects.filter(email="nobody@example.org").first()
    return found or UserFactory(email="nobody@example.org")


def test_a_client_ends_its_sign_in(tenant: Tenant) -> None:
    """SEC-536: with either token; with somebody else's, nothing happens."""
    begun = SigningIn.begun(tenant)
    for kind in ("access_token", "refresh_token"):
        tokens = begun.tokens()
        other = {"client_id": register("Spade").json()["client_id"], "token": tokens[kind]}
        assert Client().post("/oauth/revoke", other).status_code == 200
        assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 200
        mine = {"client_id": begun.client_id, "token": tokens[kind]}
        assert Client().post("/oauth/revoke", mine).status_code == 200
        assert McpClient(tenant, tokens["access_token"]).post("tools/list").status_code == 401
        assert begun.refresh(tokens["refresh_token"]).status_code == 400


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    "kind",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=x; charset=utf-16",
        "application/x-www-form-urlencoded; charset=utf-16",
    ],
)
def test_a_form_that_cannot_be_read_is_refused_as_clients_expect(path: str, kind: str) -> None:
    """REL-2423: as JSON with an error's code. Source: RFC 6749, section 5.2."""
    answer = Client().generic("POST", path, b"--x--", content_type=kind)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")
    assert answer.json()["error"] == "invalid_request"
    assert answer["Cache-Control"] == "no-store"
