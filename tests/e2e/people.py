"""The demo's people, and what they do again and again."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from config.demo.people import PASSWORD

MEMBER = "member@demo.example"
ADMIN = "admin@demo.example"
AUDITOR = "auditor@demo.example"


def enter(page: Page, email: str) -> None:
    """Sign in to the demo workspace through the login form, as people do."""
    page.goto("/accounts/login/")
    page.locator("input[name=login]").fill(email)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url("**/w/**")


def open_chat(page: Page, bud: str, question: str) -> None:
    """Begin a conversation with a bud by writing to it."""
    page.goto("/w/demo/")
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
