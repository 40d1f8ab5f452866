"""What a client and a person do while somebody signs in with another MCP client."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.test import Client

from tests.factories import Tenant

ORIGIN = "http://testserver"
REDIRECT = "http://127.0.0.1:3912/callback"
VERIFIER = "v" * 64
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


def let_clients_in(tenant: Tenant, *, is_on: bool = True) -> None:
    tenant.workspace.allows_mcp_clients = is_on
    tenant.workspace.save()


def hidden_fields(page: str) -> dict[str, str]:
    """What the form of a page sends along."""
    return {name: unescape(value) for name, value in _HIDDEN.findall(page)}


def answer_of(location: str) -> dict[str, str]:
    """What an address tells the client that waits there."""
    return dict(parse_qsl(urlsplit(location).query))


def register(name: str = "Rake", *redirects: str, client: Client | None = None) -> Any:
    """A program makes itself known."""
    values = {"client_name": name, "redirect_uris": list(redirects) or [REDIRECT]}
    browser = client or Client()
    return browser.post("/oauth/register", json.dumps(values), content_type="application/json")


@dataclass
class SigningIn:
    """A client that registered, and a person of a workspace who is asked about it."""

    tenant: Tenant
    client_id: str
    role: str = "member"
    redirect: str = REDIRECT
    browser: Client = field(init=False)

    def __post_init__(self) -> None:
        self.browser = self.tenant.client(self.role)

    @classmethod
    def begun(cls, tenant: Tenant, *, role: str = "member", name: str = "Rake") -> SigningIn:
        let_clients_in(tenant)
        return cls(tenant, register(name).json()["client_id"], role)

    @property
    def resource(self) -> str:
        return f"{ORIGIN}/w/{self.tenant.workspace.slug}/mcp/"

    def params(self, **changed: str | None) -> dict[str, str]:
        params: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "scope": "mcp:read mcp:call",
            "state": "state-of-client",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": self.resource,
            **changed,
        }
        return {name: value for name, value in params.items() if value is not None}

    def page(self, **changed: str | None) -> Any:
        return self.browser.get("/oauth/authorize", self.params(**changed))

    def answer(self, given: str = "allow", *, reach: str = "mcp:call", **changed: str) -> Any:
        """The person opens the page and answers."""
        shown = self.page()
        assert shown.status_code == 200, shown.content
        sent = hidden_fields(shown.content.decode())
        return self.browser.post(
            "/oauth/authorize", {**sent, "answer": given, "reach": reach, **changed}
        )

    def code(self, **given: str) -> str:
        answered = self.answer(**given)
        assert answered.status_code == 302, answered.content
        return answer_of(answered["Location"])["code"]

    def ask_tokens(self, **sent: str) -> Any:
        return Client().post("/oauth/token", {"client_id": self.client_id, **sent})

    def exchange(self, code: str, **changed: str) -> Any:
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "code_verifier": VERIFIER,
            "resource": self.resource,
        }
        return self.ask_tokens(**{**sent, **changed})

    def refresh(self, token: str, **changed: str) -> Any:
        return self.ask_tokens(**{"grant_type": "refresh_token", "refresh_token": token, **changed})

    def tokens(self, **given: str) -> Mapping[str, Any]:
        """Tokens of a person who let the client in."""
        answer = self.exchange(self.code(**given))
        assert answer.status_code == 200, answer.content
        body: Mapping[str, Any] = answer.json()
        return body
