"""Chats are dragged into folders and out of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import screenshot
from tests.e2e.people import HOME, MEMBER, enter, expect_idle, open_chat
from tests.e2e.screens import DESK


def drag(page: Page, row: Locator, onto: Locator) -> None:
    """As a hand does it: what takes the chat may appear on the way."""
    row.locator("a").hover()
    page.mouse.down()
    box = row.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + 5)
    page.mouse.move(box["x"] + 40, box["y"] + 3)
    onto.hover()
    onto.hover()  # the second move is what a browser calls being over it
    expect(onto).to_have_attribute("data-takes", "over")


@pytest.mark.screens(DESK, reason="is about a mouse")
def test_a_chat_is_dragged_into_a_folder_and_out_again(page: Page) -> None:
    """REL-1745: folders show that they take it, and the way back is as with the menu."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Lima?")
    expect_idle(page)
    page.get_by_role("button", name="New folder").click()
    dialog = page.get_by_role("dialog", name="New folder")
    dialog.get_by_label("Name").fill("Dragged")
    dialog.get_by_role("button", name="Save").click()
    folders = page.get_by_role("region", name="Folders")
    folder = folders.get_by_role("listitem").filter(has_text="Dragged")
    row = page.locator("li.chat-row", has_text="Lima").first
    try:
        drag(page, row, folder)
        screenshot(page, "folder-takes-chat")
        page.mouse.up()
        expect(row.locator(".folder-dot")).to_be_visible()
        expect(page.locator("[data-takes]")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(row.locator(".folder-dot")).to_have_count(0)
        drag(page, row, folder)
        page.mouse.up()
        expect(row.locator(".folder-dot")).to_be_visible()
        drag(page, row, folders.get_by_text("No folder").locator(".."))
        page.mouse.up()
        expect(row.locator(".folder-dot")).to_have_count(0)
        page.reload()
        expect(row).to_be_visible()
        expect(row.locator(".folder-dot")).to_have_count(0)
    finally:
        page.goto(HOME)
        page.get_by_role("button", name="More for Dragged").click()
        page.locator(".menu-pop:popover-open").get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
