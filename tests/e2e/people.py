"""The demo's people, and what they do again and again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from config.demo.people import PASSWORD

MEMBER = "member@demo.example"
ADMIN = "admin@demo.example"
AUDITOR = "auditor@demo.example"


HOME = "/w/demo/"
_SIGN_IN = "/accounts/login/"
_kept: dict[str, list[Any]] = {}
"""Of each person: the cookie of a session that they began."""


def sign_in(page: Page, email: str) -> None:
    """Sign in to the demo workspace through the login form, as people do; it leads to the workspace."""
    page.goto(_SIGN_IN)
    page.locator("input[name=login]").fill(email)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url("**/w/**")


def enter(page: Page, email: str, at: str = HOME) -> None:
    """Be at a page of the demo workspace, as that person.

    They fill the login form once. A browser that holds nothing yet is then given the cookie of that session, and the
    form is filled again where it has ended meanwhile. Whoever needs a session of their own signs in.
    """
    context = page.context
    if (kept := _kept.get(email)) and not context.cookies():
        context.add_cookies(kept)
        page.goto(at)
        if _SIGN_IN not in page.url:
            return
        context.clear_cookies()
    sign_in(page, email)
    _kept[email] = [
        one for one in context.cookies() if one.get("name") == settings.SESSION_COOKIE_NAME
    ]
    if at != HOME:
        page.goto(at)


def open_chat(page: Page, bud: str, question: str) -> None:
    """Begin a conversation with a bud by writing to it."""
    if urlsplit(page.url).path != HOME:
        page.goto(HOME)
    page.locator(".bud-card").get_by_role("button", name=bud).first.click()
    say(page, question)
    page.wait_for_url("**/c/**")


def say(page: Page, text: str) -> None:
    """Write into the composer and send."""
    composer = page.get_by_role("textbox", name="Message").first
    composer.fill(text)
    composer.press("Enter")


def tool_card(page: Page) -> Locator:
    """The newest tool card."""
    return page.locator("article.tool-card").last


def approval_card(page: Page) -> Locator:
    """The card that waits for a decision."""
    return page.locator(".approval").last


def expect_idle(page: Page) -> None:
    """Wait until the turn is over: the composer offers Send, not Stop."""
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator("article.answer[aria-busy=true]")).to_have_count(0)
