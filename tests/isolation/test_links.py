"""Every link on every page leads somewhere, and every form may be sent, for each of those who see it."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from tests.extent import IS_FULL, one_of
from tests.factories import ROLES, signed_in
from tests.isolation.offers import Offers
from tests.isolation.world import World
from workspaces.models import User

pytestmark = pytest.mark.django_db

_ENOUGH = 60
"""Routes at the least that whoever administers a workspace comes by."""
_SENT = 10
"""Forms at the least that anybody may send."""
_MOST = 3 if IS_FULL else 2
"""Addresses of one route that are asked for: a filter more leads to the same links."""
_WAYS = {"o", "_changelist_filters", "_facets", "p", "_popup"}
"""How a list is shown, and the way back to it: the tests of lists ask for each of them."""
_START = "the start"
_HERE = "http://testserver"
_TARGET = re.compile(r'\b(?:href|hx-get)="([^"]*)"')
_Kind = tuple[str, frozenset[str]]
"""A route, and the names of what its query says."""


_PLATFORM = "platform's owner"
_ADMINISTRATORS = ("owner", "admin")
"""They see nearly the same, as the others do among themselves; a run for a release tries all."""
_OTHERS = [role for role in ROLES if role not in _ADMINISTRATORS]


@pytest.mark.parametrize(
    "roles",
    [
        *((role, _PLATFORM) for role in one_of(_ADMINISTRATORS, "links")),
        *((role,) for role in one_of(_OTHERS, "their links")),
    ],
    ids=" and ".join,
)
def test_every_link_leads_somewhere(world: World, roles: tuple[str, ...]) -> None:
    """REL-840, REL-1487: nobody is led to a page that is missing or closed to them, or offered what they may not do.

    The platform's owner looks at what was not shown before, to who owns a workspace; for a release, at everything.
    """
    seen: set[_Kind] = set()
    for role in roles:
        client = _of_the_platform() if role == _PLATFORM else world.a.client(role)
        starts = ["/", "/account/", f"/w/{world.a.slug}/servers/"]
        if role == _PLATFORM:
            starts.append("/admin/")
        offers = Offers(client, _kind_of)
        known = set() if IS_FULL else set(seen)
        dead = _follow(client, starts, world, offers, known)
        assert dead == [], role
        assert offers.refused == [], role
        assert offers.sent > _SENT, role
        seen |= known
    if _PLATFORM in roles:
        assert len({route for route, _ in seen}) > _ENOUGH


def _of_the_platform() -> Client:
    return signed_in(User.objects.create_superuser(email="platform@trellis.example"))


def _follow(
    client: Client, starts: list[str], world: World, offers: Offers, kinds: set[_Kind]
) -> list[str]:
    """Ask for whatever can be reached, a few addresses of each route, and look at what is offered there.

    Args:
        kinds: of addresses, which are asked for only as starts. What is asked for is added.

    Returns:
        In words the addresses that lead nowhere.
    """
    # An approval waits in this world that the log knows nothing of.
    found_nowhere = str(world.a["approval"].call_id)
    routes: Counter[str] = Counter()
    dead: list[str] = []
    waiting = deque((address, _START) for address in starts)
    seen: set[str] = set()
    while waiting:
        address, source = waiting.popleft()
        if address in seen:
            continue
        seen.add(address)
        if (kind := _kind_of(address)) is None:
            dead.append(f"{address} on {source}: no such address")
            continue
        is_enough = kind in kinds or routes[kind[0]] == _MOST
        if found_nowhere in address or (is_enough and source != _START):
            continue
        kinds.add(kind)
        routes[kind[0]] += 1
        answer = client.get(address)
        if answer.status_code in (301, 302):
            waiting.append((urljoin(address, answer["Location"]), source))
        elif answer.status_code >= 400:
            dead.append(f"{address} on {source}: {answer.status_code}")
        else:
            waiting += ((link, address) for link in _links(answer, address))
            if _is_page(answer):
                offers.look_at(answer.content.decode(), address)
    return dead


def _kind_of(address: str) -> _Kind | None:
    """The address without what stands for single rows; None if there is no such address."""
    parts = urlsplit(address)
    try:
        match = resolve(parts.path)
    except Resolver404:
        return None
    route = match.route if match.namespace != "admin" else f"{match.route} {match.url_name}"
    return route, frozenset(name for name, _ in parse_qsl(parts.query)) - _WAYS


def _is_page(answer: Any) -> bool:
    return not answer.streaming and "html" in answer.get("Content-Type", "")


def _links(answer: Any, address: str) -> Iterator[str]:
    """Where a page leads within the product."""
    if not _is_page(answer):
        return
    for value in _TARGET.findall(answer.content.decode()):
        target = urlsplit(urljoin(_HERE + address, unescape(value)))
        is_ours = f"{target.scheme}://{target.netloc}" == _HERE
        if is_ours and not target.path.startswith("/static/"):
            yield f"{target.path}?{target.query}" if target.query else target.path
