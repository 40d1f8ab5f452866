"""A stranger's wrong passwords do not lock the owner out, and guessing stays slow."""

from __future__ import annotations

import re

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client

from audit.models import AuditEntry
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL = "ada@example.org"
HOME, AWAY = "198.51.100.7", "203.0.113.9"


@pytest.fixture(autouse=True)
def owner() -> None:
    cache.clear()
    UserFactory.create(email=EMAIL)


def signs_in(client: Client, password: str = PASSWORD, address: str = HOME) -> bool:
    form = {"login": EMAIL, "password": password}
    client.post("/accounts/login/", form, REMOTE_ADDR=address)
    return "_auth_user_id" in client.session


def guess(times: int, address: str, client: Client | None = None) -> None:
    for _ in range(times):
        assert not signs_in(client or Client(), "wrong", address)


def known_browser() -> Client:
    client = Client()
    assert signs_in(client)
    client.post("/accounts/logout/")
    return client


def test_a_strangers_guesses_leave_the_owner_alone() -> None:
    """SEC-283: neither a new browser on another network nor a known one on the same is locked."""
    browser = known_browser()
    guess(30, AWAY)
    assert not signs_in(Client(), address=AWAY)
    assert signs_in(Client(), address=HOME)
    assert signs_in(browser, address=AWAY)


def test_neighbours_guesses_do_not_lock_a_known_browser() -> None:
    """SEC-283: also where many share one address."""
    browser = known_browser()
    guess(40, HOME)
    assert not signs_in(Client())
    assert signs_in(browser)


@pytest.mark.parametrize(
    "network", ["203.0.113.{}", "2001:db8:7:{}::1", "2001:db8:7::{}"], ids=["v4", "v6", "v6-64"]
)
def test_a_network_is_one_stranger(network: str) -> None:
    """SEC-283: changing the address within one's own network gives no further tries."""
    for number in range(1, 6):
        guess(1, network.format(number))
    assert not signs_in(Client(), address=network.format(77))


def test_guessing_from_everywhere_is_slow_and_spares_known_browsers() -> None:
    """SEC-283: all strangers together have a limit for each account."""
    browser = known_browser()
    for number in range(200):
        guess(1, f"10.0.{number}.1")
    assert not signs_in(Client(), address="10.9.9.9")
    assert signs_in(browser)


def test_a_known_browser_is_no_free_guess() -> None:
    """SEC-283: it has its own few tries, of its own accounts only, and its mark cannot be made up."""
    browser = known_browser()
    UserFactory.create(email="grace@example.org")
    guess(5, HOME, browser)
    assert not signs_in(browser)
    forged = Client()
    forged.cookies["trellis-browser"] = "made-up"
    guess(5, AWAY, forged)
    assert not signs_in(forged, address=AWAY)


def test_a_new_password_by_mail_opens_the_door_at_once() -> None:
    """SEC-283: whoever is locked out with the others of their network has a way in."""
    guess(12, AWAY)
    client, new = Client(REMOTE_ADDR=AWAY), "another good password 9"
    client.post("/accounts/password/reset/", {"email": EMAIL})
    found = re.search(r"/accounts/password/reset/key/\S+", str(mail.outbox[-1].body))
    assert found is not None
    page = client.get(found[0], follow=True)
    client.post(page.request["PATH_INFO"], {"password1": new, "password2": new})
    assert client.get("/accounts/password/change/").status_code == 302  # nobody is signed in by it
    assert signs_in(client, new, AWAY)
    assert password_entries() == [(EMAIL, AWAY)]


def password_entries() -> list[tuple[str, str | None]]:
    rows = AuditEntry.objects.across_workspaces().filter(action="auth.password_changed")
    return [(row.actor_label, row.ip_address) for row in rows.order_by("pk")]


def test_the_log_tells_of_a_changed_password() -> None:
    """SEC-686: of whom, and from where; not of one that was refused."""
    client, new = Client(REMOTE_ADDR=HOME), "another good password 9"
    assert signs_in(client)
    form = {"oldpassword": "wrong", "password1": new, "password2": new}
    client.post("/accounts/password/change/", form)
    assert password_entries() == []
    client.post("/accounts/password/change/", {**form, "oldpassword": PASSWORD})
    assert password_entries() == [(EMAIL, HOME)]


def test_the_page_says_what_to_do() -> None:
    """SEC-283: in words."""
    guess(5, AWAY)
    page = Client().post(
        "/accounts/login/", {"login": EMAIL, "password": PASSWORD}, REMOTE_ADDR=AWAY
    )
    assert "Too many wrong passwords. Try again in a few minutes" in page.content.decode()
