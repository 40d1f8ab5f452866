"""What keys open and close."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e.conftest import NewContext
from tests.e2e.people import MEMBER, enter


def test_escape_closes_what_lies_over_the_sidebar_and_then_the_sidebar(
    new_context: NewContext,
) -> None:
    """REL-918: a menu with and without links, and a dialog."""
    page = new_context(viewport={"width": 390, "height": 800}).new_page()
    enter(page, MEMBER)
    page.goto("/w/demo/")
    page.get_by_role("button", name="Open the sidebar").first.click()
    sidebar = page.locator("#sidebar")
    expect(sidebar).to_have_attribute("data-open", "true")
    for name in ("^Your account", "^Notices"):
        page.get_by_role("button", name=re.compile(name)).click()
        expect(page.locator(".menu-pop:popover-open")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator(".menu-pop:popover-open")).to_have_count(0)
        expect(sidebar).to_have_attribute("data-open", "true")
    page.get_by_role("button", name="New folder").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(sidebar).to_have_attribute("data-open", "true")
    page.keyboard.press("Escape")
    expect(sidebar).to_have_attribute("data-open", "false")


def test_the_list_of_shortcuts_opens_at_its_beginning(new_context: NewContext) -> None:
    """REL-922: with the focus on a link that stands above it."""
    page = new_context(viewport={"width": 1280, "height": 500}).new_page()
    enter(page, MEMBER)
    page.goto("/w/demo/")
    page.get_by_role("textbox", name="Message").first.press("Control+/")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_role("link", name="Shortcuts of all pages")).to_be_focused()
    assert dialog.evaluate("node => [node.scrollTop, node.scrollHeight > node.clientHeight]") == [
        0,
        True,
    ]
