"""Requests to the identity provider of single sign-on. They leave by the same guard as all others.

They are apart, since allauth's errors load a library for requests that a server without single sign-on does without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus, urlsplit

import httpx2
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.core.cache import cache

from workspaces.database import wait_for
from workspaces.outbound import egress
from workspaces.outbound.bounds import Bounds

_BOUNDS: Final = Bounds(
    connect_seconds=5, idle_seconds=10, total_seconds=15, body_bytes=2**20, line_bytes=2**16
)
_KEPT_SECONDS: Final = 600
"""How long the provider's description of itself is kept: each click on the button would fetch it otherwise."""
_FAULT_SECONDS: Final = 10
"""How long a provider that is away is not asked again: each click would wait for it otherwise."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderFailed(OAuth2Error):
    """What went wrong, in words that may stand in the server's log: nothing that the provider sent is in them."""


def read_description(issuer: str) -> dict[str, Any]:
    """Give what the provider says of itself, of the last ten minutes.

    Raises:
        ProviderFailed: it cannot be had, or is not that of this issuer.

    Source: https://openid.net/specs/openid-connect-discovery-1_0.html
    """
    key = f"sso:{issuer}"
    found: dict[str, Any] | str | None = cache.get(key)
    if isinstance(found, str):  # why there was none a moment ago
        raise ProviderFailed(found)
    if found is None:
        try:
            found = fetch_description(issuer)
        except ProviderFailed as error:
            cache.set(key, str(error), _FAULT_SECONDS)
            raise
        cache.set(key, found, _KEPT_SECONDS)
    return found


def fetch_description(issuer: str) -> dict[str, Any]:
    """The same, of now."""
    with ProviderSession() as session:
        answer = session.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        answer.raise_for_status()
        found = answer.json()
    check_description(found, issuer=issuer)
    return found


def check_description(found: Mapping[str, Any], *, issuer: str) -> None:
    """Check that a description is that of this issuer, and names what a sign-in takes.

    Raises:
        ProviderFailed: with what is wrong.
    """
    if found.get("issuer") != issuer:
        raise ProviderFailed("The provider calls itself something else than the setting does.")
    missing = [name for name in _ENDPOINTS if not isinstance(found.get(name), str)]
    if missing:
        raise ProviderFailed(f"The provider does not say its {', '.join(missing)}.")
    is_safe = issuer.startswith("https:")
    for name in (*_ENDPOINTS, "userinfo_endpoint"):
        if name in found and not _is_address(found[name], is_safe=is_safe):
            kind = "https address" if is_safe else "address"
            raise ProviderFailed(f"The provider names no {kind} as its {name}.")


def _is_address(url: object, *, is_safe: bool) -> bool:
    """Whether it is an address, with TLS where the issuer has it: anybody could answer there otherwise."""
    try:
        parts = urlsplit(str(url))
        has_host = bool(parts.hostname)
    except ValueError:
        return False
    return has_host and parts.scheme in ({"https"} if is_safe else {"http", "https"})


@contextmanager
def reading_odd_answers() -> Iterator[None]:
    """Say in words what a library meets in an answer of other types than the protocol has."""
    try:
        yield
    except (
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        name = type(error).__name__
        raise ProviderFailed(f"The provider's answer cannot be read ({name}).") from error


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What allauth reads of an answer."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> dict[str, Any]:
        """Raises ProviderFailed for anything but a JSON object."""
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ProviderFailed("The provider sent something else than a JSON object.")
        return found

    def raise_for_status(self) -> None:
        """Raises ProviderFailed unless the answer is good."""
        if self.status_code != httpx2.codes.OK:
            raise ProviderFailed(f"The provider answered with status {self.status_code}.")


class ProviderSession:
    """Requests to the provider, which leave by the same guard as all others. Raises ProviderFailed where one fails."""

    def __enter__(self) -> ProviderSession:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        """Fetch something."""
        return self.request("GET", url, headers=headers)

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Any = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
    ) -> ProviderAnswer:
        """Send one request, and read the answer whole."""
        # https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1 has both encoded first.
        named = (quote_plus(auth.username), quote_plus(auth.password)) if auth else None
        try:
            answer = wait_for(
                _send, method, url, params=params, data=data, headers=headers, auth=named
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise ProviderFailed(
                f"The provider cannot be reached ({type(error).__name__})."
            ) from error
        if method == "POST" and answer.is_client_error:
            raise ProviderFailed(f"The provider refused the code ({_error_code(answer.content)}).")
        headers = {"content-type": "", **answer.headers}
        return ProviderAnswer(answer.status_code, headers, answer.content)


async def _send(method: str, url: str, **options: Any) -> httpx2.Response:
    async with egress.client(bounds=_BOUNDS) as client:
        return await client.request(method, url, **options)


def _error_code(content: bytes) -> str:
    """The code of a refusal, such as `invalid_client`. Source: https://www.rfc-editor.org/rfc/rfc6749#section-5.2"""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        code = json.loads(content)["error"]
        if re.fullmatch(r"[a-z_]{1,60}", code):
            return str(code)
    return "no reason given"
