"""An identity provider, and people who sign in with it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.test import Client, override_settings
from pydantic import SecretStr

from tests.factories import UserFactory
from tests.fakes.authorization import Issuer
from workspaces.models import User
from workspaces.people.email_addresses import confirm_address

START = "/accounts/sso/"
SECRET = "the-secret-of-trellis-at-the-provider"
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


def confirmed(email: str = ADA, **fields: Any) -> User:
    """Somebody who has answered the mail to their address."""
    person = UserFactory.create(email=email, **fields)
    confirm_address(person)
    return person


def issued(provider: Issuer) -> list[str]:
    """Every access token that the provider has given."""
    return list(provider.accounts._access)
