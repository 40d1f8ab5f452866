"""Every page, wide and narrow, in both themes: accessible, nothing cut off, pictures kept."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import (
    ADMIN,
    AUDITOR,
    MEMBER,
    approval_card,
    enter,
    expect_idle,
    open_chat,
    say,
)
from tests.e2e.screens import DESK
from tests.extent import IS_FULL

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")

WIDTHS = {"desktop": 1280, "phone": 360}
MIDDLE = 768
"""Between them. It shows nothing that neither of them shows, so it is only asked whether all fits."""


def add_one_with_sign_in(page: Page) -> None:
    """A server that people sign in to; once it is there, it is refused for its name."""
    token = page.locator("input[name=csrfmiddlewaretoken]").first.input_value()
    fields = {"name": "Post office", "url": "https://post.example.org/mcp", "auth_type": "oauth"}
    page.request.post(
        "/w/demo/servers/add/",
        form={**fields, "protocol": "auto", "csrfmiddlewaretoken": token},
        headers={"Referer": page.url},
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_look_right_and_are_accessible(new_context: NewContext, width: str) -> None:
    """Ours: in either theme axe finds nothing, and no page scrolls sideways."""

    def context() -> Page:
        size = {"width": WIDTHS[width], "height": 800}
        return new_context(viewport=size, bypass_csp=True).new_page()

    def check(page: Page, name: str) -> None:
        look_in_both_themes(page, f"{name}-{width}", was_seen=width != "desktop")
        expect_fits(page, name)
        if width == "desktop":
            page.set_viewport_size({"width": MIDDLE, "height": 800})
            expect_fits(page, f"{name}, {MIDDLE} px")
            if IS_FULL:
                expect_no_faults(page, f"{name}, {MIDDLE} px")
            page.set_viewport_size({"width": WIDTHS[width], "height": 800})

    page = context()
    page.goto("/accounts/login/")
    check(page, "login")
    enter(page, MEMBER)
    expect(page.get_by_text("Clock").first).to_be_visible()
    check(page, "home")
    page.get_by_role("textbox", name="Message").fill("/")
    expect(page.get_by_role("listbox", name="Commands and prompts")).to_be_visible()
    check(page, "commands")
    page.get_by_role("textbox", name="Message").fill("")
    page.keyboard.press("Control+Shift+M")
    expect(page.get_by_role("dialog", name="Bud and model")).to_be_visible()
    check(page, "chooser")
    page.keyboard.press("Escape")
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    check(page, "answer")
    open_chat(page, "Clock", "Show me all formats")
    expect(page.locator(".md-diagram img")).to_be_visible()
    expect(page.locator(".md-math .katex")).to_be_visible()
    expect_idle(page)
    check(page, "formats")
    for _ in range(2):  # two of one name, which the list of what waits tells apart
        open_chat(page, "Notes", 'Delete the note "old"')
        expect(approval_card(page)).to_be_visible()
    say(page, "And then, when that is done, tell me which notes are left")
    expect(page.get_by_role("region", name="Waiting messages")).to_be_visible()
    check(page, "waiting")
    page.get_by_role("button", name=re.compile("^Waiting for you: ")).click()
    expect(
        page.get_by_role("dialog", name="Waiting for you").locator(".approval")
    ).not_to_have_count(0)
    check(page, "waiting-list")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Stop").click()
    for name in (
        "account",
        "account/sessions",
        "account/tokens",
        "accounts/email",
        "w/demo/reminders",
    ):
        page.goto(f"/{name}/")
        check(page, name.replace("/", "-"))
    page = context()
    enter(page, ADMIN, at="/w/demo/servers/")
    expect(page.locator("article.server").first).to_be_visible()
    check(page, "servers")
    card = page.locator("article.server", has_text="notes 1.0").first
    server = card.get_attribute("data-server")
    card.locator("summary.tools-summary").click()
    check(page, "server-tools")
    for name in ("settings", "offers", "trace"):
        page.goto(f"/w/demo/servers/{server}/{name}/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        check(page, f"server-{name}")
    for name in ("import", "add"):
        page.goto(f"/w/demo/servers/{name}/")
        check(page, f"server-{name}")
    add_one_with_sign_in(page)
    page.goto("/w/demo/servers/")
    other = page.locator("article.server", has_text="Post office").first
    expect(other).to_contain_text("Needs sign-in")
    check(page, "servers-with-sign-in")
    home = f"/w/demo/servers/{other.get_attribute('data-server')}"
    for path in (
        "/w/demo/catalogue/",
        "/w/demo/connections/",
        f"{home}/people/",
        f"{home}/sign-in/",
    ):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        check(page, path.strip("/").rpartition("/")[2])
    page.goto("/w/demo/people/?q=member@")
    check(page, "members")
    page.get_by_role("link", name="Max Member").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    check(page, "member")
    for name in ("people/invite", "people/link", "requests"):
        page.goto(f"/w/demo/{name}/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        check(page, name.replace("/", "-"))
    page.goto(f"{home}/settings/")
    expect(page.get_by_text("Register this address at the issuer")).to_be_visible()
    check(page, "settings-with-sign-in")
    page = context()
    enter(page, AUDITOR, at="/w/demo/audit/")
    expect(page.locator("canvas")).to_be_visible()
    check(page, "audit")
    for name in ("audit/overview", "audit/reports", "audit/reviews", "audit/schedules", "activity"):
        page.goto(f"/w/demo/{name}/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        check(page, name.replace("/", "-"))
