"""Single sign-on: people sign in with the identity provider of their organization."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialToken
from allauth.socialaccount.signals import pre_social_login
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client, override_settings
from django.utils import timezone
from pydantic import SecretStr

from audit.models import AuditEntry
from config.doctor import FindingState, examine_part
from tests.factories import PASSWORD, Tenant, UserFactory, signed_in
from tests.fakes.authorization import Issuer
from tests.workspaces.people.authenticator_app import code_of
from tests.workspaces.people.test_two_step import CODE, turn_on
from workspaces.actors import Role, Source
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, Membership, User
from workspaces.people.email_addresses import confirm_address
from workspaces.people.platform import save_account
from workspaces.people.provider_requests import _is_address
from workspaces.people.services import make_invitation
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db(transaction=True)
START = "/accounts/sso/"
SECRET = "the-secret-of-trellis-at-the-provider"
PASSWORD_PAGE = "/accounts/password/set/"
BACK = "http://testserver/accounts/sso/callback/"
ADA = "ada@example.org"


def configured(issuer: Issuer, **fields: Any) -> override_settings:
    """Trellis with this provider in its settings."""
    values = {
        "sso_issuer": issuer.url,
        "sso_client_id": "trellis",
        "sso_client_secret": SecretStr(SECRET),
        "sso_name": "Acme",
        "sso_domains": ("example.org",),
        **fields,
    }
    return override_settings(TRELLIS=settings.TRELLIS.model_copy(update=values))


@pytest.fixture
def provider(issuer: Issuer) -> Iterator[Issuer]:
    """A provider that says of each account at its page that the address is confirmed, and Trellis that knows it."""
    issuer.serves = {"openid"}
    issuer.id_tokens = True
    issuer.accounts.claims = {"email_verified": True, "name": "Ada Lovelace"}
    issuer.add_client("trellis", SECRET, BACK)
    with configured(issuer):
        yield issuer


def continue_with(provider: Issuer, client: Client, account: str = ADA, to: str = "") -> Any:
    """Press the button, say at the provider's page who one is, and come back."""
    there = client.get(f"{START}?next={to}" if to else START)
    assert there.status_code == 302, there.content.decode()
    back = urlsplit(provider.redirect_back(there.headers["Location"], account))
    return client.get(f"{back.path}?{back.query}")


def text_of(response: Any) -> str:
    """The words of a page, in one line."""
    return " ".join(response.content.decode().split())


def is_in(client: Client) -> bool:
    """Whether this browser is signed in."""
    return "_auth_user_id" in client.session


def last_entry(action: str) -> AuditEntry:
    """The newest of its kind."""
    found = AuditEntry.objects.across_workspaces().filter(action=action).order_by("-id").first()
    assert found is not None
    return found


def confirmed(email: str = ADA, **fields: Any) -> User:
    """Somebody who has answered the mail to their address."""
    person = UserFactory.create(email=email, **fields)
    confirm_address(person)
    return person


# Signing in


def test_a_person_signs_in_with_the_provider_and_lands_where_they_wanted(provider: Issuer) -> None:
    """REL-3300: Whoever the provider knows signs in without a password, and the log says so."""
    ada, client = confirmed(), Client()
    page = client.get("/accounts/login/?next=/account/")
    assert 'href="/accounts/sso/?next=/account/"' in page.content.decode()
    assert "Continue with Acme" in page.content.decode()

    assert continue_with(provider, client, to="/account/").headers["Location"] == "/account/"

    assert client.session["_auth_user_id"] == str(ada.pk)
    assert last_entry("auth.signed_in").sign_in == "sso"


def test_the_provider_is_asked_as_the_protocol_says(provider: Issuer) -> None:
    """SEC-1234: Single sign-on uses a state, PKCE and its own client at the provider, and asks for nothing more."""
    confirmed()
    client = Client()
    sent = parse_qs(urlsplit(client.get(START).headers["Location"]).query)
    assert sent["code_challenge_method"] == ["S256"]
    assert set(sent["scope"][0].split()) == {"openid", "profile", "email"}
    assert sent["redirect_uri"] == [BACK]
    assert len(sent["state"][0]) >= 16

    continue_with(provider, client)
    (form,) = provider.token_requests("authorization_code")
    assert len(form["code_verifier"]) >= 43
    assert is_in(client)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_trellis_proves_itself_as_the_provider_wants(provider: Issuer, method: str) -> None:
    """REL-3305: Trellis proves itself in either way that providers ask for, or by PKCE alone where it has no secret."""
    confirmed()
    secret = "" if method == "none" else f"{SECRET}+/&"
    provider.add_client("trellis", secret, BACK, token_endpoint_auth_method=method)
    client = Client()
    with configured(provider, sso_client_secret=SecretStr(secret)):
        continue_with(provider, client)
    assert is_in(client)


def test_somebody_who_comes_again_is_known_by_more_than_their_address(provider: Issuer) -> None:
    """REL-3301: A person whose address changes at the provider keeps their account."""
    ada = confirmed()
    provider.accounts.claims["sub"] = "person-17"
    continue_with(provider, Client())
    client = Client()
    continue_with(provider, client, "ada.king@example.org")
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_without_the_setting_there_is_no_such_way_in(client: Client) -> None:
    """Nobody sees a button, and the addresses behind it are empty."""
    assert "/accounts/sso/" not in client.get("/accounts/login/").content.decode()
    assert client.get(START).status_code == 404
    assert client.get(f"{START}callback/?code=1&state=2").status_code == 404


def test_whoever_is_signed_in_goes_on(provider: Issuer) -> None:
    """A second click on the button changes nothing."""
    assert signed_in(confirmed()).get(f"{START}?next=/account/").headers["Location"] == "/account/"


# Who is let in


@pytest.mark.parametrize(
    ("account", "claims", "words"),
    [
        ("ada@example.com", {}, "Here it lets in people with an address at example.org"),
        (ADA, {"email_verified": False}, "is not confirmed to be yours"),
        (ADA, {"email": None}, "does not say your e-mail address"),
    ],
)
def test_only_addresses_that_the_provider_may_vouch_for_find_an_account(
    provider: Issuer, account: str, claims: dict[str, Any], words: str
) -> None:
    """SEC-1235: An address finds an account only at a domain of the setting, and only if the provider does not doubt it."""
    confirmed(account)
    provider.accounts.claims |= claims
    if "email" in claims:
        provider.answer("userinfo", {"sub": account})
    client = Client()
    answer = continue_with(provider, client, account)
    assert answer.status_code == 403
    assert words in text_of(answer)
    assert not is_in(client)
    assert last_entry("auth.failed").details["step"] == "sso"


def test_a_provider_may_keep_silent_about_what_it_gives_itself(provider: Issuer) -> None:
    """Some providers say of no address that it is confirmed. The setting of domains says that they give them."""
    ada, client = confirmed(), Client()
    provider.accounts.claims["email_verified"] = None
    continue_with(provider, client)
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_an_address_that_only_waits_for_its_mail_finds_nobody(provider: Issuer) -> None:
    """SEC-1236: Whoever has noted somebody else's address at their own account does not get that person's sign-in."""
    eve = confirmed("eve@example.org")
    EmailAddress.objects.create(user=eve, email=ADA, verified=False, primary=False)
    client = Client()
    assert continue_with(provider, client).status_code == 403
    assert not is_in(client)


def test_an_address_that_was_given_to_somebody_else_opens_no_account(provider: Issuer) -> None:
    """SEC-1254: An account that the provider knows as one person's opens to nobody else who gets its address."""
    confirmed()
    provider.accounts.claims["sub"] = "person-17"
    continue_with(provider, Client())
    provider.accounts.claims["sub"] = "person-18"
    client = Client()
    answer = continue_with(provider, client)
    assert answer.status_code == 403
    assert "knows it as somebody else’s" in text_of(answer)
    assert not is_in(client)


def test_two_addresses_never_become_one(provider: Issuer) -> None:
    """SEC-1255: An address beyond ASCII, of which small letters make another one, opens nobody's account."""
    confirmed("mark@example.org")
    provider.accounts.claims["email"] = "mar\u212a@example.org"
    client = Client()
    assert continue_with(provider, client).status_code == 403
    assert not is_in(client)


def test_nobody_comes_in_uninvited(provider: Issuer) -> None:
    """SEC-1237: The provider alone makes no account: it takes an invitation, or the workspace for all."""
    client = Client()
    answer = continue_with(provider, client)
    assert answer.status_code == 403
    assert "nobody has invited this address" in text_of(answer)
    assert not User.objects.filter(email=ADA).exists()


def test_an_invited_person_needs_no_password(provider: Issuer, tenant: Tenant) -> None:
    """REL-3302: With an invitation, the first sign-in makes the account, named as the provider names it, and joins."""
    _row, token = make_invitation(
        workspace=tenant.workspace,
        email=ADA,
        role=Role.ADMIN,
        is_auditor=False,
        actor=tenant.actor("owner"),
    )
    client = Client()
    client.get(f"/invitations/{token}/")
    assert "Continue with Acme" in client.get("/accounts/signup/").content.decode()
    assert continue_with(provider, client).status_code == 302
    ada = User.objects.get(email=ADA)
    assert ada.name == "Ada Lovelace"
    assert ada.is_address_confirmed
    assert not ada.has_usable_password()
    assert Membership.unscoped.get(user=ada, workspace=tenant.workspace).role == Role.ADMIN.value


def test_an_invitation_serves_only_whom_it_was_sent_to(provider: Issuer, tenant: Tenant) -> None:
    """Who comes by the link of somebody else's invitation stays outside."""
    _row, token = make_invitation(
        workspace=tenant.workspace,
        email="bob@example.org",
        role=Role.MEMBER,
        is_auditor=False,
        actor=tenant.actor(),
    )
    client = Client()
    client.get(f"/invitations/{token}/")
    assert continue_with(provider, client).status_code == 403


def test_new_people_join_the_workspace_for_all(provider: Issuer, tenant: Tenant) -> None:
    """REL-3303: With a workspace for all in the settings, new people become its members, and the log says by what."""
    client = Client()
    with configured(provider, sso_workspace=tenant.workspace.slug):
        continue_with(provider, client)
    ada = User.objects.get(email=ADA)
    assert Membership.unscoped.get(user=ada).role == Role.MEMBER.value
    entry = last_entry("config.changed")
    assert (entry.details["verb"], entry.actor_label) == ("created", ADA)
    assert client.get(f"/w/{tenant.workspace.slug}/").status_code == 200


def test_somebody_who_was_switched_off_stays_out(provider: Issuer) -> None:
    """SEC-1238: Single sign-on lets nobody in whose account is switched off."""
    confirmed(is_active=False)
    client = Client()
    assert continue_with(provider, client).headers["Location"] == "/accounts/inactive/"
    assert not is_in(client)


# What others may have prepared


def test_an_account_that_nobody_confirmed_is_its_owners_alone_afterwards(
    provider: Issuer, tenant: Tenant
) -> None:
    """SEC-1239: The first single sign-on ends password, sessions, second step and tokens of an unconfirmed account."""
    ada = UserFactory.create(email=ADA, is_confirmed=False)
    Membership.unscoped.create(workspace=tenant.workspace, user=ada, role=Role.MEMBER.value)
    eve = Client()
    eve.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    turn_on(eve)
    actor = actor_for(ada, tenant.workspace, source=Source.WEB, request_id="test")
    issue_token(
        workspace=tenant.workspace,
        user=ada,
        name="Eve's",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=7),
        actor=actor,
    )

    client = Client()
    continue_with(provider, client)

    assert client.session["_auth_user_id"] == str(ada.pk)
    assert eve.get("/account/").status_code == 302
    assert not ApiToken.objects.across_workspaces().filter(user=ada).exists()
    assert not Authenticator.objects.filter(user=ada).exists()
    ada.refresh_from_db()
    assert ada.is_address_confirmed
    assert not ada.has_usable_password()


def test_an_owner_of_the_platform_keeps_their_password(provider: Issuer) -> None:
    """SEC-1240: An owner of the platform signs in with their password too, also where all others may not."""
    owner = UserFactory.create(email=ADA, is_superuser=True, is_confirmed=False)
    with configured(provider, sso_required=True):
        client = Client()
        continue_with(provider, client)
        assert client.session["_auth_user_id"] == str(owner.pk)
        client = Client()
        client.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
        assert is_in(client)


def test_a_password_lets_nobody_in_where_single_sign_on_is_required(
    provider: Issuer, tenant: Tenant
) -> None:
    """SEC-1241: Where it is required, no password lets in somebody of its domains, and none can be chosen for that."""
    confirmed()
    confirmed("guest@example.com")
    with configured(provider, sso_required=True):
        client = Client()
        page = client.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
        assert "You sign in with Acme, and in no other way" in page.content.decode()
        assert not is_in(client)

        client.post("/accounts/login/", {"login": "guest@example.com", "password": PASSWORD})
        assert is_in(client)

        _row, token = make_invitation(
            workspace=tenant.workspace,
            email="new@example.org",
            role=Role.MEMBER,
            is_auditor=False,
            actor=tenant.actor("owner"),
        )
        client = Client()
        client.get(f"/invitations/{token}/")
        fields = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
        page = client.post("/accounts/signup/", fields)
        assert "You sign in with Acme" in page.content.decode()
        assert not User.objects.filter(email="new@example.org").exists()


def test_another_address_is_no_way_around_it(provider: Issuer) -> None:
    """SEC-1258: Who has to use single sign-on stays its person, and does not change their address here."""
    with configured(provider, sso_required=True):
        grace = Client()
        confirmed("grace@example.org")
        continue_with(provider, grace, "grace@example.org")
        page = grace.post("/accounts/email/", {"action_add": "", "email": "grace@example.com"})
        assert "your address is the one that you have there" in text_of(page)
    ada = confirmed()
    continue_with(provider, Client())
    User.objects.filter(pk=ada.pk).update(email="ada@example.com")
    EmailAddress.objects.filter(user=ada).update(email="ada@example.com")
    with configured(provider, sso_required=True):
        client = Client()
        client.post("/accounts/login/", {"login": "ada@example.com", "password": PASSWORD})
        assert not is_in(client)


def test_an_account_that_gets_another_address_is_of_whoever_has_that(
    provider: Issuer, superuser: User
) -> None:
    """SEC-1253: When the platform's owner gives an account another address, single sign-on goes by that one."""
    ada = confirmed()
    continue_with(provider, Client())
    ada.email = "grace@example.org"
    actor = actor_for(superuser, None, source=Source.ADMIN, request_id="test")
    save_account(account=ada, actor=actor)
    assert continue_with(provider, Client()).status_code == 403
    client = Client()
    continue_with(provider, client, "grace@example.org")
    assert client.session["_auth_user_id"] == str(ada.pk)


def test_a_second_step_that_has_ended_meanwhile_lets_nobody_in(provider: Issuer) -> None:
    """SEC-1259: Whoever waits at the second step begins anew when it, or their password, has ended."""
    ada = confirmed()
    browser = Client()
    browser.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    turn_on(browser)
    waiting = Client()
    waiting.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    assert waiting.get(CODE).status_code == 200
    with configured(provider, sso_required=True):
        assert waiting.get(CODE).headers["Location"] == "/accounts/login/"
    waiting.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    Authenticator.objects.filter(user=ada).delete()
    assert waiting.get(CODE).headers["Location"] == "/accounts/login/"
    assert waiting.get("/accounts/login/").status_code == 200
    assert not is_in(waiting)


def test_the_second_step_is_asked_for_here_as_well(provider: Issuer) -> None:
    """SEC-1242: Whoever has two-step verification here gives a code after single sign-on, too; the session holds no token."""
    ada = confirmed()
    browser = Client()
    browser.post("/accounts/login/", {"login": ADA, "password": PASSWORD})
    key = turn_on(browser)
    Authenticator.objects.filter(user=ada).update(last_used_at=None)
    cache.clear()  # a code works once

    client = Client()
    assert continue_with(provider, client).headers["Location"].startswith(CODE)
    assert not is_in(client)
    assert "access_token" not in json.dumps(dict(client.session))
    assert not any(token in json.dumps(dict(client.session)) for token in issued(provider))
    client.post(CODE, {"code": code_of(key)})
    assert is_in(client)
    assert last_entry("auth.signed_in").sign_in == "sso+code"


def issued(provider: Issuer) -> list[str]:
    """Every access token that the provider has given."""
    return list(provider.accounts._access)


# What may go wrong


def test_a_sign_in_that_was_begun_elsewhere_lets_nobody_in(provider: Issuer) -> None:
    """SEC-1243: What the provider sends back works once, and only in the browser that asked for it."""
    confirmed()
    client, other = Client(), Client()
    there = client.get(START).headers["Location"]
    back = urlsplit(provider.redirect_back(there, ADA))
    for browser in (other, client, client):
        answer = browser.get(f"{back.path}?{back.query}")
        if browser is other:
            assert answer.status_code == 400
            assert "begun too long ago, in another browser" in text_of(answer)
            assert not is_in(other)
    assert is_in(client)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another-client"},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"exp": None},
        {"azp": "another-client"},
        {"sub": None},
        {"sub": 5},
        {"sub": "a\0b"},
        {"sub": "x" * 300},
        {"exp": "soon", "jti": "1"},
    ],
    ids=lambda claims: json.dumps(claims)[:24],
)
def test_an_id_token_for_others_lets_nobody_in(provider: Issuer, claims: dict[str, Any]) -> None:
    """SEC-1244: An ID token that is of another issuer, for another client, too old, or names nobody is refused."""
    confirmed()
    provider.accounts.claims |= claims
    client = Client()
    answer = continue_with(provider, client)
    assert answer.status_code == 502
    assert "Acme did not sign you in" in text_of(answer)
    assert not is_in(client)


def test_an_answer_about_somebody_else_lets_nobody_in(provider: Issuer) -> None:
    """What the ID token does not say of the address may be asked for, of the same person alone."""
    confirmed()
    provider.accounts.claims["email"] = None
    client = Client()
    provider.answer("userinfo", {"sub": "eve@example.org", "email": ADA})
    assert continue_with(provider, client).status_code == 502
    provider.recover("userinfo")
    continue_with(provider, client)
    assert is_in(client)


def cause_in(caplog: pytest.LogCaptureFixture) -> str:
    """What the server's log says of the sign-in that failed last."""
    found = [record for record in caplog.records if record.message == "sso_failed"]
    return str(vars(found[-1])["why"])


def test_a_provider_that_is_away_is_said_in_words(
    provider: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-3304: Whatever the provider answers, people read what happened, and the server's log has the cause."""
    confirmed()
    client = Client()
    with caplog.at_level(logging.WARNING):
        there = client.get(START).headers["Location"]
        back = urlsplit(provider.redirect_back(there, ADA))
        provider.fail("token", error="invalid_client", status=401)
        answer = client.get(f"{back.path}?{back.query}")
        assert answer.status_code == 502
        assert cause_in(caplog) == "The provider refused the code (invalid_client)."

        cache.clear()
        for document, cause in (
            ({"issuer": "https://another.example"}, "calls itself something else"),
            ({"issuer": provider.url}, "does not say its authorization_endpoint"),
            (["nothing"], "something else than a JSON object"),
            ({**provider.metadata(), "token_endpoint": "http://[bad"}, "names no address as its"),
            ({**provider.metadata(), "userinfo_endpoint": 5}, "names no address as its"),
        ):
            cache.clear()
            provider.answer("metadata", document)
            assert client.get(START).status_code == 502
            assert cause in cause_in(caplog)
        provider.recover("metadata")
        assert client.get(START).status_code == 502, "it is not asked again at once"
        cache.clear()
        provider.stop()
        answer = client.get(START)
        assert answer.status_code == 502
        assert "Try again in a minute" in text_of(answer)
        assert "cannot be reached" in cause_in(caplog)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("is_known", [True, False])
def test_two_first_sign_ins_at_once_make_one_account(
    provider: Issuer, tenant: Tenant, is_known: bool
) -> None:
    """REL-3312: A person who comes for the first time in two windows at once gets one account, and no error."""
    if is_known:
        confirmed()
    first, second = Client(), Client()
    answers: list[Any] = []

    def come_between(**_words: Any) -> None:
        pre_social_login.disconnect(come_between)
        answers.append(continue_with(provider, second))

    pre_social_login.connect(come_between)
    with configured(provider, sso_workspace=tenant.workspace.slug):
        answers.append(continue_with(provider, first))
    assert [answer.status_code for answer in answers] == [302, 400]
    assert "Please sign in again" in text_of(answers[1])
    assert is_in(second)
    assert User.objects.filter(email=ADA).count() == SocialAccount.objects.count() == 1


@pytest.mark.parametrize(
    "tokens",
    [
        {"access_token": 5},
        {"access_token": "a", "expires_in": "soon"},
        {"access_token": "a", "id_token": 7},
        {"access_token": "a", "id_token": "\ud800"},
        ["a"],
    ],
    ids=str,
)
def test_odd_tokens_are_no_error_of_the_server(provider: Issuer, tokens: Any) -> None:
    """REL-3304: also where the types are not those of the protocol."""
    client = Client()
    there = client.get(START).headers["Location"]
    back = urlsplit(provider.redirect_back(there, ADA))
    provider.answer("token", tokens)
    assert client.get(f"{back.path}?{back.query}").status_code == 502


def test_a_provider_with_tls_has_it_everywhere() -> None:
    """SEC-1256: A provider at an https address gets no code and no secret at an address without TLS."""
    for url, is_good in (
        ("https://login.example.org/token", True),
        ("http://login.example.org/token", False),
        ("https://", False),
    ):
        assert _is_address(url, is_safe=True) is is_good


def test_an_address_with_a_query_is_asked_at(provider: Issuer) -> None:
    """Some providers name the policy of the sign-in there."""
    place = f"{provider.endpoint('authorize')}?policy=usual"
    provider.metadata_overrides["authorization_endpoint"] = place
    there = Client().get(START).headers["Location"]
    assert there.startswith(f"{place}&")
    assert parse_qs(urlsplit(there).query)["client_id"] == ["trellis"]


def test_clicks_are_counted(provider: Issuer) -> None:
    """SEC-1257: A stranger begins no more than sixty sign-ins a minute, since each one is a row and a request."""
    codes = [Client().get(START).status_code for _n in range(61)]
    assert codes == [*[302] * 60, 429]


def test_the_provider_is_reached_by_the_same_guard(provider: Issuer) -> None:
    """SEC-1245: Requests to the provider leave as all others do: none goes to a network that is closed."""
    with configured(provider, allowed_networks=()):
        cache.clear()
        assert Client().get(START).status_code == 502
    assert not provider.at("metadata")


def test_somebody_who_says_no_is_back_at_the_sign_in(provider: Issuer) -> None:
    """Saying no at the provider is no error."""
    confirmed()
    provider.accounts.denies = True
    assert continue_with(provider, Client()).headers["Location"] == "/accounts/login/"


def test_nothing_is_kept_of_a_person_but_who_they_are(provider: Issuer) -> None:
    """SEC-1246: Trellis keeps no token of the provider and nothing of what it says of somebody but address and name."""
    ada = confirmed()
    provider.accounts.claims["birthdate"] = "1815-12-10"
    continue_with(provider, Client())
    linked = SocialAccount.objects.get(user=ada)
    assert (linked.provider, linked.uid, linked.extra_data) == (provider.url, ADA, {})
    assert not SocialToken.objects.exists()
    kept = " ".join(session.session_data for session in Session.objects.all())
    assert not any(token in kept for token in issued(provider))


def test_settings_fit_somebody_without_a_password(provider: Issuer, tenant: Tenant) -> None:
    """REL-3307: Who signs in with the provider is led to a password they may set, or reads that none would help."""
    client = Client()
    with configured(provider, sso_workspace=tenant.workspace.slug):
        continue_with(provider, client)
        assert client.get("/accounts/password/change/").headers["Location"] == PASSWORD_PAGE
        assert 'name="password1"' in text_of(client.get(PASSWORD_PAGE))
        assert "Set a password first" in text_of(client.get("/accounts/2fa/"))
    with configured(provider, sso_required=True):
        page = text_of(client.get(PASSWORD_PAGE))
        assert "You sign in with Acme. A password does not let you in here." in page
        assert 'name="password1"' not in page
        assert "a second step is turned on there" in text_of(client.get("/accounts/2fa/"))
    client.post(PASSWORD_PAGE, {"password1": PASSWORD, "password2": PASSWORD})
    assert User.objects.get(email=ADA).has_usable_password()


def test_the_doctor_tells_whether_the_provider_is_there(provider: Issuer, tenant: Tenant) -> None:
    """REL-3306: The doctor says with what people sign in, and what to do where that does not work."""
    found = examine_part("single sign-on")
    assert (found.state, found.text) == (FindingState.OK, "with Acme, for example.org")
    with configured(provider, sso_workspace="nowhere"):
        assert "“nowhere” is not there" in examine_part("single sign-on").text
    with configured(provider, sso_workspace=tenant.workspace.slug):
        assert examine_part("single sign-on").state is FindingState.OK
    with configured(
        provider, sso_workspace=tenant.workspace.slug, sso_domains=("example.org", "gmail.com")
    ):
        assert "anybody can get an address at gmail.com" in examine_part("single sign-on").text
    provider.metadata_overrides["issuer"] = "https://another.example"
    found = examine_part("single sign-on")
    assert found.state is FindingState.FAILED
    assert "calls itself something else" in found.text
    assert "TRELLIS_SSO_ISSUER" in found.advice
