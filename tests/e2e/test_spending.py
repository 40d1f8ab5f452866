"""A member reaches their spending limit, reads why in the chat, and goes on once the admin has raised it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults, trying_others
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, expect_idle, open_chat, say

LIMITS = "/w/demo/spending/"


def set_limit(page: Page, which: str, tokens: str = "") -> None:
    """The admin's part: the limit of the demo's member."""
    page.goto(f"{LIMITS}?q={MEMBER}")
    row = page.get_by_role("row").filter(has_text=MEMBER)
    row.get_by_role("link", name=re.compile("Change the limit")).click()
    page.get_by_label(which, exact=True).check()
    page.get_by_label("Tokens a month").fill(tokens)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("and holds from now on.")).to_be_visible()


def test_a_member_at_their_limit_reads_why_and_goes_on_once_it_is_raised(
    page: Page, new_context: NewContext
) -> None:
    """REL-1088, REL-1087: the question stays, and no model was asked."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Berlin?")
    expect_idle(page)
    admin = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(admin, ADMIN)
    set_limit(admin, "A limit of their own", "1")
    expect_no_faults(admin)
    screenshot(admin, "spending-limits")
    try:
        say(page, "And one more thing")
        notice = page.get_by_text("You have reached your monthly spending limit", exact=False)
        expect(notice.first).to_be_visible()
        expect(page.get_by_text("ask a workspace admin to raise your limit").first).to_be_visible()
        expect(page.get_by_text("And one more thing").first).to_be_visible()
        screenshot(page, "spending-limit-reached")
        page.goto("/w/demo/usage/")
        expect(page.get_by_text("Nothing is left, so models do not answer.")).to_be_visible()
        expect_no_faults(page)
        screenshot(page, "spending-usage")
        with trying_others(page):
            page.set_viewport_size({"width": 360, "height": 720})
            expect_fits(page)
        page.go_back()
    finally:
        set_limit(admin, "No limit")
    page.get_by_role("button", name="Retry").click()
    expect_idle(page)
    expect(notice).to_have_count(0)
    set_limit(admin, "The limit of all members")
    admin.goto("/w/demo/audit/?refused_by=spending_limit&range=all")
    expect(admin.locator("table").get_by_text("Model not asked").first).to_be_visible()
    admin.goto(LIMITS)
    admin.set_viewport_size({"width": 360, "height": 720})
    expect_fits(admin)
