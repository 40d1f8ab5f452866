"""A member asks for what a rule has a second person allow; the admin allows it; the member sees the result."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    ADMIN,
    MEMBER,
    approval_card,
    enter,
    expect_idle,
    open_chat,
    say,
    tool_card,
)

RULES = "/w/demo/servers/call-rules/"


def make_rule(page: Page) -> None:
    """The admin's part: deleting big things takes a second person."""
    page.goto("/w/demo/servers/")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("link", name="Call rules").click()
    expect(page.get_by_text("No rules yet.")).to_be_visible()
    expect_no_faults(page)
    screenshot(page, "call-rules-empty")
    page.get_by_role("link", name="New rule").click()
    page.get_by_label("Name", exact=True).fill("Four eyes")
    alone = page.get_by_text("This workspace has one admin or owner.")
    page.get_by_label("Block the call").check()
    expect(alone).to_be_hidden()
    page.get_by_label(re.compile("Ask a second person")).check()
    expect(alone).to_be_visible()
    page.get_by_label("Servers").fill("notes")
    page.get_by_label("Tools").fill("delete_*")
    row = page.get_by_role("group", name="Condition 1")
    row.get_by_label("Value of").fill("name")
    row.get_by_label("Comparison").select_option("starts_with")
    row.get_by_label("With").fill("shop")
    page.get_by_label("Reason").fill("Lists are shared.")
    expect_no_faults(page)
    screenshot(page, "call-rule")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Asks a second person: delete_* on notes")).to_be_visible()
    page.get_by_label("Server", exact=True).fill("notes")
    page.get_by_label("Tool", exact=True).fill("delete_note")
    page.get_by_label("Arguments").fill("name: shopping")
    page.get_by_role("button", name="Try", exact=True).click()
    text = "The call rule “Four eyes” asks for a second person"
    expect(page.get_by_role("status").filter(has_text=text)).to_be_visible()
    expect_no_faults(page)
    screenshot(page, "call-rules")
    page.set_viewport_size({"width": 360, "height": 720})
    expect_fits(page)
    page.set_viewport_size({"width": 1280, "height": 800})


def delete_rule(page: Page) -> None:
    """As an admin does."""
    page.goto(RULES)
    page.get_by_role("link", name="Edit").first.click()
    page.get_by_role("button", name="Delete the rule").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("“Four eyes” is deleted.")).to_be_visible()


def test_a_member_asks_an_admin_allows_and_the_member_sees_the_result(
    page: Page, new_context: NewContext
) -> None:
    """REL-3146, REL-1096: in two browsers at once; the admin sees the call and not the chat."""
    admin = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
    enter(admin, ADMIN)
    make_rule(admin)
    try:
        admin.goto("/w/demo/")
        enter(page, MEMBER)
        # A note of its own: other journeys read those that the demo begins with.
        open_chat(page, "Notes", 'Write a note "shops" with the text "baker"')
        approval_card(page).get_by_role("button", name="Allow once").click()
        expect_idle(page)
        say(page, 'Delete the note "shops"')
        card = approval_card(page)
        expect(card).to_contain_text("Waits for an admin (rule “Four eyes”)")
        expect(card).to_contain_text("Lists are shared.")
        expect(
            page.get_by_text("Waiting for an admin to allow the call above.").first
        ).to_be_visible()
        expect(card.get_by_role("button", name="Allow")).to_have_count(0)
        expect(card.get_by_role("button", name="Take it back")).to_be_visible()
        expect_no_faults(page)
        screenshot(page, "second-person-waits")
        admin.get_by_role("button", name=re.compile("^Waiting for you: ")).click()
        dialog = admin.get_by_role("dialog", name="Waiting for you")
        asked = dialog.locator(".approval").filter(has_text="delete")
        expect(asked).to_contain_text("for ")
        expect(asked).to_contain_text("shops")
        expect(asked.get_by_role("link", name="Four eyes")).to_be_visible()
        expect_no_faults(admin)
        screenshot(admin, "second-person-decides")
        asked.get_by_role("button", name="Allow once").click()
        expect(asked).to_have_count(0)
        expect_idle(page)
        expect(tool_card(page)).to_contain_text("succeeded")
    finally:
        delete_rule(admin)
