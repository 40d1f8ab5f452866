"""How often passwords may be tried: for each account from each network, and for browsers that the account knows apart.

A stranger spends the tries of their own network. The account's owner has those of their browser, which no stranger can
spend, and of their network. All strangers together have a limit for each account, far above that of one network.
"""

from __future__ import annotations

import secrets
from ipaddress import ip_network
from typing import Any

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from workspaces.middleware import client_address
from workspaces.models import User

_SALT = "workspaces.login_limits"
_LIFE_SECONDS = 365 * 24 * 3600
_MOST_ACCOUNTS = 10
"""How many people's browser one may be."""


def take_a_try(request: HttpRequest, email: str) -> ratelimit.RateLimitUsage | None:
    """Spend one try; None when there is none left."""
    email = email.lower()
    browser = _browser_known_to(request, email)
    if browser is not None:
        return _consume(request, "login_failed_known_browser", f"{email} {browser}")
    used = _consume(request, "login_failed", f"{email} {_network(request)}")
    if used is None:
        return None
    everywhere = _consume(request, "login_failed_everywhere", email)
    if everywhere is None:
        return None
    return ratelimit.RateLimitUsage(usage=used.usage + everywhere.usage)


def forget_tries(request: HttpRequest, email: str) -> None:
    """Begin anew for somebody who has set a new password by a mail, where they are."""
    email = email.lower()
    keys = {
        "login_failed": f"{email} {_network(request)}",
        "login_failed_everywhere": email,
        "login_failed_known_browser": f"{email} {_browser_known_to(request, email)}",
    }
    for action, key in keys.items():
        ratelimit.clear(request, app="allauth.account", action=action, key=key)


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Let the browser that somebody has signed in with be known to their account."""
    known = {**_known_in(request), str(user.pk): secrets.token_urlsafe(12)}
    response.set_cookie(
        _cookie(),
        signing.dumps(dict(list(known.items())[-_MOST_ACCOUNTS:]), salt=_SALT),
        max_age=_LIFE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _browser_known_to(request: HttpRequest, email: str) -> str | None:
    known = _known_in(request)
    if not known:
        return None
    user = User.objects.filter(email__iexact=email, pk__in=known).first()
    return known[str(user.pk)] if user is not None else None


def _known_in(request: HttpRequest) -> dict[str, str]:
    try:
        found: dict[str, str] = signing.loads(
            request.COOKIES.get(_cookie(), ""), salt=_SALT, max_age=_LIFE_SECONDS
        )
    except signing.BadSignature:
        return {}
    return found


def _cookie() -> str:
    prefix = "__Host-" if settings.SESSION_COOKIE_SECURE else ""
    return f"{prefix}trellis-browser"


def _network(request: HttpRequest) -> str:
    """What one customer of a provider has: all of it is one network to us."""
    address = client_address(request) or ""
    try:
        return str(ip_network(f"{address}/{48 if ':' in address else 24}", strict=False))
    except ValueError:
        return address


def _consume(request: HttpRequest, action: str, key: str) -> Any:
    return ratelimit.consume(request, app="allauth.account", action=action, key=key)
