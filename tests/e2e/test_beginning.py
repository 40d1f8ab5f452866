"""Where a chat begins, what its header says on a phone, and what is left where a chat cannot be shown."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    HOME,
    MEMBER,
    enter,
    expect_idle,
    leave_sidebar,
    open_chat,
    open_sidebar,
    say,
)
from tests.e2e.screens import DESK

PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
NOWHERE = f"{HOME}c/01a21d9f-0000-7000-8000-000000000000/"


def test_a_chat_begins_in_the_open_folder(new_context: NewContext) -> None:
    """REL-1341: the start page says so, and the chat is in the folder's list at once and after a reload."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_sidebar(page).get_by_role("button", name="New folder").click()
    dialog = page.get_by_role("dialog", name="New folder")
    dialog.get_by_label("Name").fill("Journeys")
    dialog.get_by_role("button", name="Save").click()
    folder = page.get_by_role("button", name="Journeys", exact=True)
    folder.click()
    expect(page.get_by_text("This chat goes into Journeys.")).to_be_visible()
    open_chat(page, "Clock", "What time is it in Quito?")
    expect_idle(page)
    row = open_sidebar(page).locator("li.chat-row", has_text="Quito")
    expect(row).to_be_visible()
    page.reload()
    open_sidebar(page)
    expect(row.locator(".folder-dot")).to_be_visible()
    folder.click()
    expect(row).to_be_visible()

    # It is deleted in another tab while this one begins a chat.
    page.goto(HOME)
    open_sidebar(page)
    folder.click()
    leave_sidebar(page)
    page.route("**/api/folders/", lambda route: route.abort("internetdisconnected"))
    other = page.context.new_page()
    other.goto(HOME)
    open_sidebar(other).locator("li.chat-row", has_text="Journeys").hover()
    other.get_by_role("button", name="More for Journeys").click()
    other.get_by_role("button", name="Delete", exact=True).click()
    other.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(other.get_by_role("button", name="Journeys", exact=True)).to_have_count(0)
    other.close()
    say(page, "What time is it in Bogota?")
    page.wait_for_url("**/c/**")
    expect(
        page.get_by_text("The folder has been deleted, so this chat stands in none.")
    ).to_be_visible()


@pytest.mark.screens(DESK, reason="is about phones, in sizes of its own")
def test_the_title_has_its_line_on_a_phone(new_context: NewContext) -> None:
    """REL-1343: what else is known of the chat stands below it; the way to share it is in the menu."""
    page = new_context(**PHONE).new_page()
    enter(page, MEMBER)
    page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    page.get_by_role("textbox", name="Message").first.fill("What time is it in Tokyo and in Lima?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url("**/c/**")
    expect_idle(page)
    title = page.get_by_role("heading", level=1)
    box = title.bounding_box()
    assert box is not None
    assert box["width"] >= 150  # with the button of what waits beside it
    badge = page.locator(".chat-badges .tag").bounding_box()
    assert badge is not None
    assert badge["y"] >= box["y"] + box["height"] - 1
    page.locator(".chat-header").get_by_role("button", name="More for").click()
    expect(page.get_by_role("button", name="Share…", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect_fits(page, "a chat on a phone")
    screenshot(page, "header-on-a-phone")
    expect_no_faults(page, "a chat on a phone")


def test_a_chat_that_cannot_be_shown_offers_nothing_to_write(new_context: NewContext) -> None:
    """REL-1344: no message field, no chips and no label of a model; what was written is there once the chat is."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Rome?")
    expect_idle(page)
    field = page.get_by_role("textbox", name="Message")
    field.fill("half a thought")
    address = page.url
    page.goto(NOWHERE)
    expect(page.get_by_role("heading", name="Can't show this conversation")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Conversation")
    expect(page.locator(".composer, .chips, .chat-badges .tag")).to_have_count(0)
    page.get_by_role("link", name="Skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect_no_faults(page, "a chat that cannot be shown")
    page.goto(address)
    expect(field).to_have_value("half a thought")
