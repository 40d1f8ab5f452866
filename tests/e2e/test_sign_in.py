"""Signing in to servers, as people do it: from the catalogue, on My connections, and in the midst of an answer."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.e2e.conftest import CATALOGUE, RunningTrellis, screenshot
from tests.e2e.people import ADMIN, enter, expect_idle, open_chat, say
from tests.fakes.authorization import Issuer
from tests.fakes.protected_server import ProtectedServer


def offer(trellis: RunningTrellis, protected: ProtectedServer) -> None:
    """Have the platform's owner put the server into the catalogue."""
    entry = {
        "slug": "letters",
        "title": "Letters",
        "description": "Reads and sends letters.",
        "categories": ["Documents"],
        "url": protected.url,
        "auth": "oauth",
    }
    (trellis.data_dir / CATALOGUE).write_text(json.dumps({"servers": [entry]}))


def allow(page: Page) -> None:
    """Say yes at the authorization server's page."""
    # A small window closes by itself in the end, perhaps before a click that waits for what follows is over.
    page.get_by_role("button", name="Allow").click(no_wait_after=True)


def test_install_sign_in_disconnect_and_again_in_mid_turn(
    page: Page, trellis: RunningTrellis, issuer: Issuer, protected: ProtectedServer
) -> None:
    """SEC-54: one server from the catalogue to an answer: connected, disconnected, connected anew by a window of its own,
    and, when the issuer has forgotten it all, in the midst of a call, which then goes on."""
    issuer.asks = issuer.id_tokens = True
    issuer.accounts.name = "ada@example.com"
    offer(trellis, protected)
    enter(page, ADMIN)

    # Installed from the catalogue, and straight on to the sign-in.
    page.goto("/w/demo/servers/")
    page.get_by_role("link", name="Catalogue", exact=True).click()
    page.get_by_label("Search", exact=True).fill("letters")
    page.get_by_role("button", name="Search").click()
    entry = page.locator("#known-letters")
    expect(page.locator("li.known")).to_have_count(1)
    entry.get_by_role("button", name="Install Letters").click()
    expect(page.get_by_role("heading", name="Sign in to Letters")).to_be_visible()
    screenshot(page, "sign-in")
    page.get_by_role("button", name="Go on").click()
    allow(page)
    expect(page.get_by_role("heading", name="You are connected to Letters")).to_be_visible()
    expect(page.get_by_text("2 tools found.")).to_be_visible()
    screenshot(page, "signed-in")
    page.get_by_role("link", name="To the servers").click()
    card = page.locator("article.server", has_text="Letters").first
    expect(card).to_contain_text("Connected")
    expect(card).to_contain_text("1 connected")

    # Disconnected on My connections, after a question; the token is gone over there, too.
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("link", name="My connections").click()
    expect(page.get_by_text("ada@example.com")).to_be_visible()
    page.get_by_role("button", name="Disconnect Letters").click()
    page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
    expect(page.get_by_text("Disconnected from Letters.")).to_be_visible()
    expect(page.get_by_role("heading", name="You can connect")).to_be_visible()

    # Connected anew in a small window; the page goes on by itself.
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Sign in to Letters").click()
    allow(opened.value)
    expect(page.get_by_role("button", name="Disconnect Letters")).to_be_visible()

    # Forgotten by the issuer: the call waits for the sign-in, and the same call goes on.
    open_chat(page, "Notes", "Hello")
    expect_idle(page)
    page.get_by_role("button", name="Add to this message").click()
    page.get_by_role("button", name="Servers and tools…").click()
    page.get_by_role("dialog").get_by_role("button", name="Letters").click()
    expect(page.get_by_role("switch", name="Use Letters in this chat")).to_be_checked()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    issuer.accounts.expire_access_tokens()
    issuer.accounts.forget_refresh_tokens()
    say(page, "whoami")
    page.get_by_role("button", name="Allow once").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name=re.compile("^Sign in")).click()
    screenshot(page, "sign-in-card")
    allow(opened.value)
    expect(page.locator("article.answer").last).to_contain_text("ada@example.com")
    expect_idle(page)
    assert protected.called_by("whoami") == ["ada@example.com"]

    # Uninstalled where it was installed.
    page.goto("/w/demo/catalogue/?q=letters")
    page.get_by_role("button", name="Uninstall Letters").click()
    page.get_by_role("dialog").get_by_role("button", name="Uninstall").click()
    expect(page.get_by_text("Uninstalled.")).to_be_visible()
    expect(page.get_by_role("button", name="Install Letters")).to_be_visible()
