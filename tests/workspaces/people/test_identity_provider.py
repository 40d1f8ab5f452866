"""Single sign-on: what Trellis asks of a provider, and what it makes of each answer."""

from __future__ import annotations

import json
import logging
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from pydantic import SecretStr

from config.doctor import FindingState, examine_part
from tests.factories import Tenant
from tests.fakes.authorization import Issuer
from tests.workspaces.people.single_sign_on import (
    ADA,
    BACK,
    SECRET,
    START,
    configured,
    confirmed,
    continue_with,
    is_in,
    issued,
    text_of,
)
from workspaces.people.provider_requests import ProviderFailed, check_description

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "userinfo_endpoint"])
def test_a_provider_with_tls_has_it_everywhere(name: str) -> None:
    """SEC-1256: A provider at an https address gets no code and no secret at an address without TLS."""
    issuer = "https://login.example.org"
    named = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
    description = {"issuer": issuer, **{one: f"{issuer}/{one}" for one in named}}
    check_description(description, issuer=issuer)
    for unsafe in ("http://login.example.org/there", "https://", "there"):
        with pytest.raises(ProviderFailed, match=f"names no https address as its {name}"):
            check_description({**description, name: unsafe}, issuer=issuer)


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
