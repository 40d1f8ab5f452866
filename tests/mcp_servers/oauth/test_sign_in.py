"""Signing in to a server: two requests, an issuer in between, and everything that may be wrong with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry
from mcp_servers.models import McpServer, McpTool, OAuthAttempt, OAuthClient, OAuthGrant
from mcp_servers.models.oauth import MAX_SCOPE_LENGTH
from mcp_servers.oauth.clients import REGISTER_AGAIN_AFTER
from mcp_servers.oauth.reasons import WORDS, Reason, SignInFailed
from mcp_servers.oauth.services import start_sign_in
from mcp_servers.oauth.values import Challenge, joined, scopes_of
from mcp_servers.registry.services.sign_ins import finish_sign_in
from tests.factories import Tenant
from tests.fakes.authorization import Issuer
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.factories import actor_of, http_server
from tests.mcp_servers.oauth.conftest import SESSION, SignIn, origin
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.errors import PermissionDenied


def begin(tenant: Tenant, server: McpServer, role: str = "member") -> str:
    """Start, and give the address that the browser is sent to."""
    actor = actor_of(tenant, role)
    return start_sign_in(server=server, actor=actor, session_key=SESSION, origin=origin()).url


def end(
    tenant: Tenant,
    server: McpServer,
    params: dict[str, str],
    *,
    role: str = "member",
    session: str = SESSION,
) -> Any:
    """End with what came back."""
    return finish_sign_in(
        server=server, params=params, actor=actor_of(tenant, role), session_key=session
    )


def refused(run: Any, reason: Reason) -> None:
    """Run something that has to be refused for this reason, with nothing stored."""
    with pytest.raises(SignInFailed) as failure:
        run()
    assert failure.value.reason is reason
    assert not OAuthGrant.objects.across_workspaces().exists()


def test_a_person_signs_in_and_the_server_is_there_for_them(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-48, SEC-51: one registration, one code, one grant of that person; all for this resource and no other."""
    done = sign_in(server)
    grant = OAuthGrant.objects.for_workspace(tenant.workspace).get()
    assert done.grant == grant
    assert grant.user == tenant.member
    assert grant.scope == "mail.read offline_access"
    assert grant.issuer == protected.issuer.url
    assert done.tools_found == len(protected_tools(tenant))
    assert "whoami" in protected_tools(tenant)
    [asked] = protected.issuer.at("authorize")
    assert asked.query["resource"] == protected.url
    assert asked.query["code_challenge_method"] == "S256"
    [exchanged] = protected.issuer.token_requests()
    assert exchanged["resource"] == protected.url
    assert exchanged["code_verifier"]
    assert all("token" not in path for _, path, _ in protected.requests)
    seen = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk")
    actions = [entry.action for entry in seen if entry.action.startswith("grant.")]
    assert actions == [Action.GRANT_REQUESTED, Action.GRANT_GIVEN]


def protected_tools(tenant: Tenant) -> list[str]:
    tools = McpTool.objects.for_workspace(tenant.workspace)
    return sorted(tools.values_list("name", flat=True))


def test_a_second_person_needs_no_second_registration(
    server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-55: what an issuer registered is kept under its name, with exactly our addresses."""
    sign_in(server, "member")
    sign_in(server, "admin", account="grace@example.com")
    assert len(protected.issuer.at("register")) == 1
    client = OAuthClient.objects.across_workspaces().get()
    assert client.issuer == protected.issuer.url
    assert protected.issuer.at("register")[0].json["redirect_uris"] == client.redirect_uris
    assert OAuthGrant.objects.across_workspaces().count() == 2


def test_the_state_is_long_and_stored_as_a_hash(tenant: Tenant, server: McpServer) -> None:
    """SEC-44: at least 128 bits, and the database alone does not give it away."""
    state = parse_qs(urlsplit(begin(tenant, server)).query)["state"][0]
    assert len(state) >= 43  # 256 bits in base64
    attempt = OAuthAttempt.objects.across_workspaces().get()
    assert state not in str(vars(attempt))
    assert attempt.expires_at - timezone.now() <= timedelta(minutes=10)


def test_a_sign_in_ends_once(tenant: Tenant, server: McpServer, issuer: Issuer) -> None:
    """SEC-44: the same redirect again is refused, and the code is not sent a second time."""
    params = issuer.consent(begin(tenant, server))
    end(tenant, server, params)
    with pytest.raises(SignInFailed) as failure:
        end(tenant, server, params)
    assert failure.value.reason is Reason.UNKNOWN_STATE
    assert len(issuer.token_requests("authorization_code")) == 1


@pytest.mark.parametrize(
    ("who", "session", "reason"),
    [
        ("admin", SESSION, Reason.OTHER_PERSON),
        ("member", "another-browser", Reason.OTHER_BROWSER),
        ("member", "", Reason.OTHER_BROWSER),
    ],
)
def test_nobody_else_can_end_it(
    tenant: Tenant, server: McpServer, issuer: Issuer, who: str, session: str, reason: Reason
) -> None:
    """SEC-44: another person or browser stores nothing, and does not spoil it for the one who began."""
    params = issuer.consent(begin(tenant, server))
    refused(lambda: end(tenant, server, params, role=who, session=session), reason)
    assert issuer.token_requests() == []
    assert end(tenant, server, params).grant.user == tenant.member


def test_one_that_takes_too_long_is_over(tenant: Tenant, server: McpServer, issuer: Issuer) -> None:
    """SEC-44: after ten minutes nothing is stored."""
    params = issuer.consent(begin(tenant, server))
    OAuthAttempt.objects.across_workspaces().update(expires_at=timezone.now())
    refused(lambda: end(tenant, server, params), Reason.EXPIRED)
    refused(lambda: end(tenant, server, params), Reason.UNKNOWN_STATE)


def test_a_state_of_another_server_is_unknown(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, issuer: Issuer
) -> None:
    """SEC-44: sign-ins do not cross from one server to another."""
    other = http_server(tenant, protected.url, name="other", auth_type="oauth")
    params = issuer.consent(begin(tenant, server))
    refused(lambda: end(tenant, other, params), Reason.UNKNOWN_STATE)


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"], "S256"])
def test_without_pkce_nobody_is_sent_there(
    tenant: Tenant, server: McpServer, issuer: Issuer, methods: Any
) -> None:
    """SEC-45: an issuer that does not say S256 gets no authorization request."""
    issuer.metadata_overrides["code_challenge_methods_supported"] = methods
    refused(lambda: begin(tenant, server), Reason.NO_PKCE)
    assert issuer.at("register") == []
    assert not OAuthAttempt.objects.across_workspaces().exists()


@pytest.mark.parametrize("change", ["case", "slash", "port", "other"])
def test_an_issuer_goes_by_one_name(
    tenant: Tenant, server: McpServer, issuer: Issuer, change: str
) -> None:
    """SEC-46: metadata under another spelling of the issuer's name stop the sign-in."""
    spelled = {
        "case": issuer.url.replace("http://", "HTTP://"),
        "slash": f"{issuer.url}/",
        "port": f"{issuer.url}:80",
        "other": "https://issuer.example.org",
    }[change]
    issuer.metadata_overrides["issuer"] = spelled
    refused(lambda: begin(tenant, server), Reason.ISSUER_MISMATCH)


@pytest.mark.parametrize(
    ("named_issuer", "announced", "is_good"),
    [
        ("right", True, True),
        ("right", False, True),
        (None, True, False),
        (None, False, True),
        ("https://evil.example.org", True, False),
        ("https://evil.example.org", False, False),
        ("", False, False),
    ],
)
def test_the_answer_comes_from_the_issuer_that_was_asked(
    tenant: Tenant,
    server: McpServer,
    issuer: Issuer,
    named_issuer: str | None,
    announced: bool,
    is_good: bool,
) -> None:
    """SEC-46: RFC 9207's table; after a mismatch the code is never sent."""
    issuer.metadata_overrides["authorization_response_iss_parameter_supported"] = announced
    issuer.iss = named_issuer if named_issuer != "" else None
    params = issuer.consent(begin(tenant, server))
    if named_issuer == "":
        params["iss"] = ""
    if is_good:
        assert end(tenant, server, params).grant
        return
    refused(lambda: end(tenant, server, params), Reason.ISSUER_MISMATCH)
    assert issuer.token_requests() == []


def test_an_error_from_elsewhere_is_not_believed(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """SEC-46: the issuer is checked before the error, whose text is shown to nobody."""
    issuer.accounts.denies = True
    params = issuer.consent(begin(tenant, server)) | {
        "iss": "https://evil.example.org",
        "error_description": "call 555-0100",
    }
    with pytest.raises(SignInFailed) as failure:
        end(tenant, server, params)
    assert failure.value.reason is Reason.ISSUER_MISMATCH
    assert "555" not in failure.value.message


def test_a_person_may_say_no(tenant: Tenant, server: McpServer, issuer: Issuer) -> None:
    """A cancelled sign-in has its own words, and connects nothing."""
    issuer.accounts.denies = True
    params = issuer.consent(begin(tenant, server))
    refused(lambda: end(tenant, server, params), Reason.CANCELLED)


def test_a_server_that_says_it_is_another_is_refused(
    tenant: Tenant, server: McpServer, protected: ProtectedServer
) -> None:
    """SEC-48: tokens for another resource are not asked for, nor for one above it, which are good elsewhere too."""
    above = server.url.rsplit("/", 1)[0]
    for resource in ("https://other.example.org/mcp", above, f"{server.url}/more", [server.url], 7):
        protected.metadata_overrides["resource"] = resource
        refused(lambda: begin(tenant, server), Reason.OTHER_RESOURCE)


@pytest.mark.parametrize(
    ("header", "scope"),
    [
        ('Bearer scope="a"', "a"),
        ('Digest realm="x, Bearer scope=\\"evil\\"", Bearer scope="a"', "a"),
        ('Basic realm="Bearer scope=evil", BEARER error=x, scope="a b"', "a b"),
        ('Negotiate dG9rZW4=, Bearer scope="a"', "a"),
        ('Bearer scope="a", Basic realm="x", scope="evil"', "a"),
        ('Basic realm="x"', ""),
        ("", ""),
        ('"Bearer scope=evil"', ""),
        ('Bearer scope="a" "Bearer scope=evil', "a"),
    ],
)
def test_a_challenge_is_read_past_others_and_their_quotes(header: str, scope: str) -> None:
    """Ours: RFC 9110, section 11.6.1; what stands in quotes is no challenge."""
    assert Challenge.read(401, header).scope == scope


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "intent://x#Intent;end",
        "http://issuer.example.org/authorize",
        "https://user:pass@issuer.example.org/authorize",
    ],
)
@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint"])
def test_addresses_of_an_issuer_are_secure(
    tenant: Tenant, server: McpServer, issuer: Issuer, endpoint: str, url: str
) -> None:
    """SEC-49: https, or this machine where the owner opened it; nothing else reaches a browser or is fetched."""
    issuer.metadata_overrides[endpoint] = url
    refused(lambda: begin(tenant, server), Reason.INSECURE_URL)


def test_loopback_is_the_owners_to_open(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-49: without the owner's setting, plain http stays closed on this machine too."""
    monkeypatch.setattr("workspaces.outbound.egress.allowed_networks", tuple)
    monkeypatch.setattr("workspaces.outbound.allowed_networks", tuple)
    with pytest.raises(SignInFailed) as failure:
        begin(tenant, server)
    assert failure.value.reason in (Reason.INSECURE_URL, Reason.UNREACHABLE)


def test_the_workspaces_account_is_connected_by_administrators(
    tenant: Tenant, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """One account for everybody: a member may not connect it, an administrator does for all."""
    shared = http_server(
        tenant, protected.url, name="shared", auth_type="oauth", account_use="workspace"
    )
    with pytest.raises(PermissionDenied):
        begin(tenant, shared)
    grant = sign_in(shared, "admin").grant
    assert grant.user is None
    assert grant.granted_by == tenant.admin


def test_an_entered_client_goes_to_its_first_issuer_only(
    tenant: Tenant, protected: ProtectedServer, issuer: Issuer
) -> None:
    """SEC-47: a server that names another authorization server later gets nothing of an entered client."""
    issuer.add_client("entered", "entered-secret")
    server = http_server(
        tenant,
        protected.url,
        name="entered",
        auth_type="oauth",
        auth={"client_id": "entered", "client_secret": "entered-secret"},
    )
    begin(tenant, server)
    wrong = {
        "state": parse_qs(urlsplit(begin(tenant, server)).query)["state"][0],
        "iss": issuer.url,
    }
    issuer.fail("token", status=401, error="invalid_client")
    refused(lambda: end(tenant, server, {**wrong, "code": "any"}), Reason.CLIENT_REFUSED)
    other = Issuer()
    try:
        protected.metadata_overrides["authorization_servers"] = [other.url]
        refused(lambda: begin(tenant, server), Reason.ISSUER_CHANGED)
        assert {request.endpoint for request in other.requests} == {"metadata"}
        assert all(b"entered-secret" not in request.body for request in other.requests)
    finally:
        other.stop()


def test_an_issuer_without_registration_needs_an_entered_client(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """The words say what an administrator can do."""
    issuer.metadata_overrides["registration_endpoint"] = None
    refused(lambda: begin(tenant, server), Reason.NO_CLIENT)


@pytest.mark.parametrize(
    ("endpoint", "status", "error", "reason"),
    [
        ("register", 400, "invalid_redirect_uri", Reason.REGISTRATION_REFUSED),
        ("register", 500, "", Reason.ISSUER_FAILED),
    ],
)
def test_a_refused_registration_is_told(
    tenant: Tenant,
    server: McpServer,
    issuer: Issuer,
    endpoint: str,
    status: int,
    error: str,
    reason: Reason,
) -> None:
    """Each failure of the issuer has its words."""
    issuer.fail(endpoint, status=status, error=error)
    refused(lambda: begin(tenant, server), reason)


@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (400, "invalid_grant", Reason.TOKEN_REFUSED),
        (401, "invalid_client", Reason.TOKEN_REFUSED),
        (503, "", Reason.ISSUER_FAILED),
    ],
)
def test_a_refused_code_is_told(
    tenant: Tenant, server: McpServer, issuer: Issuer, status: int, error: str, reason: Reason
) -> None:
    """A code that the issuer does not take connects nothing."""
    params = issuer.consent(begin(tenant, server))
    issuer.fail("token", status=status, error=error)
    refused(lambda: end(tenant, server, params), reason)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("invalid_scope", Reason.SCOPE_REFUSED),
        ("server_error", Reason.ISSUER_FAILED),
        ("temporarily_unavailable", Reason.ISSUER_FAILED),
        ("unauthorized_client", Reason.CLIENT_NOT_ALLOWED),
        ("login_required", Reason.REFUSED),
    ],
)
def test_an_error_in_the_redirect_says_what_to_do(
    tenant: Tenant, server: McpServer, issuer: Issuer, error: str, reason: Reason
) -> None:
    """REL-2424: whether to try again, or what an administrator has to look at. The log has the reason, too."""
    params = issuer.consent(begin(tenant, server))
    del params["code"]
    refused(lambda: end(tenant, server, {**params, "error": error}), reason)
    entry = AuditEntry.objects.across_workspaces().filter(action=Action.GRANT_FAILED).get()
    assert entry.details["reason"] == reason.value
    if error == "invalid_scope":
        params = issuer.consent(begin(tenant, server))
        issuer.fail("token", error=error)
        refused(lambda: end(tenant, server, params), reason)


@pytest.mark.parametrize("until", [1, 1e30, "never", "2030-01-01T00:00:00Z", None])
def test_an_odd_end_of_a_registration_is_none(
    tenant: Tenant, server: McpServer, issuer: Issuer, until: object
) -> None:
    """REL-2425: a registration that is over as it comes would be made anew by each person, and end all others' grants."""
    client = {
        "client_id": "odd",
        "client_secret": "secret-of-odd",
        "client_secret_expires_at": until,
    }
    issuer.answer("register", client, status=201)
    begin(tenant, server)
    begin(tenant, server, "admin")
    assert len(issuer.at("register")) == 1
    assert OAuthClient.objects.across_workspaces().get().expires_at is None


def test_a_registration_for_other_addresses_is_none(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2426: nobody is sent to a page that will not send them back. Source: RFC 7591, section 3.2.1."""
    client = {
        "client_id": "other",
        "token_endpoint_auth_method": "none",
        "redirect_uris": ["https://other.example.org/callback"],
    }
    issuer.answer("register", client, status=201)
    refused(lambda: begin(tenant, server), Reason.REGISTRATION_REFUSED)
    ours = issuer.at("register")[0].json["redirect_uris"]
    issuer.answer("register", {**client, "redirect_uris": ours}, status=201)
    begin(tenant, server)


def test_a_registration_that_the_issuer_forgot_is_made_anew(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2427: it has lost its memory, or took the secret away; an administrator entered nothing to check."""
    params = issuer.consent(begin(tenant, server))
    issuer.accounts.clients.clear()
    refused(lambda: end(tenant, server, params), Reason.TOKEN_REFUSED)
    end(tenant, server, issuer.consent(begin(tenant, server)))
    assert len(issuer.at("register")) == 2


def test_an_issuer_that_never_knows_its_registrations_gets_one_more_a_day(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2595: each sign-in left another one there. Whoever signs in reads what an administrator can do."""
    reasons = [Reason.TOKEN_REFUSED, Reason.REGISTRATION_UNKNOWN, Reason.REGISTRATION_UNKNOWN]
    issuer.fail("token", status=401, error="invalid_client")

    def sign_in(reason: Reason) -> None:
        params = issuer.consent(begin(tenant, server))
        refused(lambda: end(tenant, server, params), reason)

    for reason in reasons:
        sign_in(reason)
    assert len(issuer.at("register")) == 2
    assert "register it there by hand" in WORDS[Reason.REGISTRATION_UNKNOWN]
    yesterday = timezone.now() - REGISTER_AGAIN_AFTER
    OAuthClient.objects.across_workspaces().update(forgotten_at=yesterday)
    for reason in reasons:
        sign_in(reason)
    assert len(issuer.at("register")) == 3


def test_two_whose_registration_is_unknown_at_once_both_start_again(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2595: the second one's refusal is about the registration that is forgotten already."""
    params = [issuer.consent(begin(tenant, server, who)) for who in ("member", "admin")]
    issuer.accounts.clients.clear()
    refused(lambda: end(tenant, server, params[0]), Reason.TOKEN_REFUSED)
    refused(lambda: end(tenant, server, params[1], role="admin"), Reason.TOKEN_REFUSED)


def test_a_registration_that_may_not_do_that_is_not_made_anew(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2502: the issuer knows it, so another one would be refused as well, and end everybody's grants."""
    issuer.fail("token", status=400, error="unauthorized_client")
    for _ in range(2):
        params = issuer.consent(begin(tenant, server))
        refused(lambda params=params: end(tenant, server, params), Reason.CLIENT_NOT_ALLOWED)
    assert len(issuer.at("register")) == 1


def test_a_registration_may_be_forgotten_while_somebody_begins(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """REL-2503: a renewal finds that just when it was looked up, and nothing breaks."""
    begin(tenant, server)
    looked_up = False

    def forget_once(execute: Any, sql: str, *rest: Any) -> Any:
        nonlocal looked_up
        answer = execute(sql, *rest)
        if not looked_up and sql.startswith(f'SELECT "{OAuthClient._meta.db_table}"'):
            looked_up = True
            OAuthClient.objects.across_workspaces().update(expires_at=timezone.now())
        return answer

    with connection.execute_wrapper(forget_once):
        begin(tenant, server)
    assert looked_up


def test_settings_that_change_meanwhile_stop_it(
    tenant: Tenant, server: McpServer, issuer: Issuer
) -> None:
    """SEC-99: a server that points elsewhere by now is not given the code."""
    params = issuer.consent(begin(tenant, server))
    McpServer.objects.across_workspaces().update(url="https://elsewhere.example.org/mcp")
    server.refresh_from_db()
    refused(lambda: end(tenant, server, params), Reason.CHANGED)
    assert issuer.token_requests() == []


def test_many_scopes_are_kept_as_far_as_they_can_be() -> None:
    """A server that names more scopes than a row holds is signed in to with the first ones."""
    wanted = [f"https://scopes.example.org/{number:03}/{'x' * 60}" for number in range(90)]
    kept = scopes_of(" ".join(wanted))
    assert kept == tuple(wanted[: len(kept)])
    assert len(" ".join(kept)) <= MAX_SCOPE_LENGTH < len(" ".join(wanted))
    assert joined(wanted, wanted) == kept


def test_odd_metadata_are_left_out(tenant: Tenant, server: McpServer, issuer: Issuer) -> None:
    """What no database column can hold is not kept: NUL and other invisible characters."""
    issuer.metadata_overrides["scopes_supported"] = ["a\x00", "mail.read", 3, None]
    issuer.metadata_overrides["revocation_endpoint"] = "https://x\x00.example.org"
    begin(tenant, server)
    metadata = OAuthClient.objects.across_workspaces().get().metadata
    assert metadata["scopes_supported"] == ["mail.read"]
    assert metadata["revocation_endpoint"] == ""


def test_two_people_begin_at_once_with_an_entered_client(
    tenant: Tenant, protected: ProtectedServer, issuer: Issuer
) -> None:
    """One row for the client, however many begin at the same moment."""
    issuer.add_client("entered", "entered-secret")
    server = http_server(
        tenant,
        protected.url,
        name="entered",
        auth_type="oauth",
        auth={"client_id": "entered", "client_secret": "entered-secret"},
    )
    with Threads(3) as threads:
        roles = ("member", "admin", "owner")
        urls = [
            done.result(PATIENCE)
            for done in [threads.submit(begin, tenant, server, r) for r in roles]
        ]
    assert len(set(urls)) == 3
    assert OAuthClient.objects.across_workspaces().count() == 1
