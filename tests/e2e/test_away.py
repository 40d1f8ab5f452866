"""What people open and do while the connection is away for a moment."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import RunningTrellis, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import expect_idle, open_chat, open_share, open_sidebar, send


@pytest.mark.service_worker
def test_what_did_not_come_without_a_connection_comes_with_it(member: Page) -> None:
    """REL-1358: parts of the page that were never open before, and a file to download; each says why in words."""
    open_chat(member, "Clock", "What time is it in Tokyo?")
    expect_idle(member)
    open_chat(member, "Clock", "What time is it in Lima?")
    expect_idle(member)
    member.reload()
    expect(member.locator("article.answer")).to_be_visible()
    member.context.set_offline(True)
    expect(member.get_by_text("Reconnecting…")).to_be_visible()
    toast = member.locator(".toast-box")
    files = member.locator(".files-button")
    for click in (files.click, lambda: open_share(member)):
        click()
        expect(toast.last).to_contain_text("Can't reach the server. Check your connection.")
        toast.last.get_by_role("button", name="Dismiss").click()
        expect(toast).to_have_count(0)
    member.locator(".chat-header").get_by_role("button", name="More for").click()
    member.get_by_role("button", name="Download as Markdown").click()
    expect(toast.last).to_contain_text("Can't reach the server. Check your connection.")
    # A chat that has not come yet has its name, and is not said to be answered by somebody.
    open_sidebar(member).locator("li.chat-row a", has_text="Tokyo").first.click()
    expect(member.get_by_role("heading", level=1)).to_contain_text("Tokyo")

    member.context.set_offline(False)
    expect(member.locator("article.answer")).to_contain_text("Tokyo")
    open_share(member)
    dialog = member.get_by_role("dialog", name="Share")
    expect(dialog).to_be_visible()
    member.keyboard.press("Escape")
    files.click()
    panel = member.locator("#files-panel")
    expect(panel).to_contain_text("Files")
    panel.get_by_role("button", name="Close").click()  # on a phone it lies over the chat
    expect(panel).to_have_count(0)
    with member.expect_download():
        member.locator(".chat-header").get_by_role("button", name="More for").click()
        member.get_by_role("button", name="Download as Markdown").click()


ARCHIVE = """
from chat.models import Bud
Bud.objects.across_workspaces().filter(slug="writer", workspace__slug="demo").update(is_archived={0})
"""


def test_a_message_that_was_not_sent_is_changed(member: Page, trellis: RunningTrellis) -> None:
    """REL-1359: the bud that it asks was archived meanwhile; its words go back into the field, and are sent to another."""
    open_chat(member, "Clock", "What time is it in Tokyo?")
    expect_idle(member)
    # The page does not hear that the bud is gone, as it otherwise may at any moment.
    member.route("**/api/buds/**", lambda route: route.abort("internetdisconnected"))
    composer = member.get_by_role("textbox", name="Message")
    composer.press_sequentially("@wri")
    composer.press("Tab")
    expect(member.get_by_role("list", name="With this message")).to_contain_text("Writer")
    trellis.shell(ARCHIVE.format(True))
    try:
        composer.fill("What time is it in Rome?")
        send(member)
        failed = member.get_by_role("alert").filter(has_text="Not sent")
        expect(failed).to_be_visible()
        screenshot(member, "not-sent")
        expect_no_faults(member, "a message that was not sent")
        failed.get_by_role("button", name="Edit").click()
        expect(failed).to_have_count(0)
        expect(composer).to_have_value("What time is it in Rome?")
        expect(composer).to_be_focused()
        member.locator(".chips .chip-drop").click()
        send(member)
        expect(member.locator("article.answer").last).to_contain_text("Rome")
    finally:
        trellis.shell(ARCHIVE.format(False))


OPEN_MORE = """
async () => {
  const url = new URL("/ws/w/demo/", location.href.replace(/^http/, "ws"));
  window.more = Array.from({ length: 50 }, () => new WebSocket(url));
  await Promise.all(window.more.map((one) => new Promise((done) => {
    one.onopen = done;
    one.onclose = done;
  })));
}
"""


def test_a_page_too_many_says_so(member: Page) -> None:
    """SEC-681: somebody has very many pages open. The next one says why it is not live, and is once some are closed."""
    member.goto("/w/demo/")
    expect(member.get_by_role("textbox", name="Message")).to_be_visible()
    member.evaluate(OPEN_MORE)
    page = member.context.new_page()
    page.goto("/w/demo/")
    banner = page.get_by_text("you have too many pages of Trellis open")
    expect(banner).to_be_visible()
    look_in_both_themes(page, "too-many-pages")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(banner).to_be_visible()
    expect_no_faults(page, "a page too many on a phone", seen="at another width")
    screenshot(page, "too-many-pages-phone")
    member.evaluate("() => window.more.forEach((one) => one.close())")
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    expect(banner).to_have_count(0)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect_idle(page)
