"""Temporary chats, as people begin, find, keep and delete them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import trying_others
from tests.e2e.conftest import NewContext
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import MEMBER, approval_card, enter, expect_idle, say
from tests.e2e.screens import Screen


def look(page: Page, name: str) -> None:
    """Take its picture in both themes, and find no faults."""
    with trying_others(page):
        look_in_both_themes(page, name)


def test_a_temporary_chat_is_kept_or_gone(new_context: NewContext, screen: Screen) -> None:
    """REL-1010, REL-1011, REL-1012: from the keys to a chat in no list, over a reload and an approval; then kept."""
    page = new_context(bypass_csp=True).new_page()
    name = screen.name
    enter(page, MEMBER)
    page.get_by_role("textbox", name="Message").wait_for()
    page.locator("li.bud-card").first.wait_for()
    page.keyboard.press("Control+Shift+'")
    switch = page.get_by_role("button", name="Temporary chat")
    expect(switch).to_have_attribute("aria-pressed", "true")
    line = page.locator(".temporary-line")
    expect(line).to_contain_text("deleted 24 hours after its last activity")
    look(page, f"temporary-home-{name}")
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click()
    expect(line).to_have_count(0)
    page.get_by_role("textbox", name="Message").fill("/temp")
    page.keyboard.press("Enter")
    expect(switch).to_have_attribute("aria-pressed", "true")

    page.locator(".bud-card").get_by_role("button", name="Notes").first.click()
    say(page, f'Delete the note "{name}"')
    page.wait_for_url("**/c/**")
    expect(approval_card(page)).to_be_visible()
    address = page.url
    expect(page.locator("#sidebar li.chat-row", has_text=f'note "{name}"')).to_have_count(0)
    page.reload()
    expect(line).to_contain_text("The audit log keeps its tool calls")
    look(page, f"temporary-chat-{name}")
    page.get_by_role("button", name="waiting for you").first.click()
    expect(page.get_by_role("dialog")).to_contain_text(f'note "{name}"')
    page.keyboard.press("Escape")
    approval_card(page).get_by_role("button", name="Allow once").click()
    expect_idle(page)

    page.locator(".chat-header").get_by_role("button", name="More for").click()
    menu = page.locator(".menu-pop:popover-open")
    expect(menu.get_by_role("button", name="Keep this chat")).to_be_visible()
    for offered in ("Pin", "Archive", "Move to folder…"):
        expect(menu.get_by_role("button", name=offered, exact=True)).to_have_count(0)
    page.keyboard.press("Escape")
    line.get_by_role("button", name="Keep this chat").click()
    expect(page.get_by_text("Kept. You find it in your list.")).to_be_visible()
    expect(line).to_have_count(0)
    expect(page.locator("#sidebar li.chat-row", has_text=f'note "{name}"')).to_have_count(1)
    page.goto("/w/demo/")
    expect(switch).to_have_attribute("aria-pressed", "false")
    page.goto(address)
    expect(page.locator("article.answer").first).to_be_visible()


def test_a_deleted_temporary_chat_does_not_come_back(page: Page) -> None:
    """REL-1011: the question says so beforehand, and nothing offers to undo it."""
    enter(page, MEMBER)
    page.get_by_role("button", name="Temporary chat").click()
    page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    say(page, "What time is it in Oslo?")
    page.wait_for_url("**/c/**")
    expect_idle(page)
    address = page.url
    page.locator(".chat-header").get_by_role("button", name="More for").click()
    page.locator(".menu-pop:popover-open").get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete this chat?")
    expect(dialog).to_contain_text("erased for good")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Erased for good.")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    page.goto(address)
    expect(page.get_by_text("This conversation does not exist")).to_be_visible()
