"""A chat is shared, read by whom it is for, gone on with, updated and stopped."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from config.demo.people import PASSWORD
from tests.e2e.accessibility import expect_fits, trying_others
from tests.e2e.conftest import NewContext
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import ADMIN, AUDITOR, MEMBER, enter, expect_idle, open_chat, open_share, say

GONE = "You cannot read this chat"


def open_dialog(page: Page) -> Locator:
    """The dialog that shares the open chat."""
    open_share(page)
    dialog = page.get_by_role("dialog", name="Share this chat")
    expect(dialog.get_by_role("group", name="Who can read it")).to_be_visible()
    return dialog


def look_at(page: Page, name: str, *widths: int) -> None:
    """Pictures and faults of a page, light and dark."""
    with trying_others(page):
        for width in widths:
            page.set_viewport_size({"width": width, "height": 844})
            expect_fits(page, f"{name} {width}")
            look_in_both_themes(page, f"{name}-{width}", was_seen=width != widths[0])


def test_a_chat_is_shared_with_a_person_and_with_nobody_else(new_context: NewContext) -> None:
    """REL-2469, REL-990, REL-991, REL-993, REL-995, REL-999, SEC-470, SEC-474: two people, one who was not chosen, and a stranger."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "Show me all formats")
    expect(page.locator("article.answer .md-diagram img")).to_be_visible()
    expect_idle(page)
    dialog = open_dialog(page)
    dialog.get_by_role("searchbox", name="Find people").fill("admin")
    dialog.get_by_role("checkbox", name=ADMIN).check()
    look_at(page, "share-dialog", 1280, 390)
    dialog.get_by_role("button", name="Share", exact=True).click()
    expect(dialog.get_by_label("Link", exact=True)).to_be_focused()
    field = dialog.get_by_role("textbox", name="Link")
    expect(field).to_be_visible()
    link = field.input_value()
    look_at(page, "share-dialog-shared", 1280, 390)
    page.keyboard.press("Escape")
    expect(page.locator(".chat-header").get_by_role("button", name="Shared")).to_be_visible()

    reader = new_context(bypass_csp=True).new_page()
    enter(reader, ADMIN)
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(link)
    expect(reader.get_by_text("Shared by")).to_be_visible()
    answer = reader.locator("article.answer").first
    expect(answer.locator(".md-math-block .katex math")).to_have_count(1)
    expect(answer.locator(".md-diagram img")).to_be_visible()
    expect(reader.locator("article.user-message").first).to_contain_text("Show me all formats")
    look_at(reader, "shared-chat", 1280, 390)
    # Nobody goes on with a chat on paper.
    form = reader.get_by_text("Continue in a chat of your own")
    expect(form).to_be_visible()
    reader.emulate_media(media="print")
    expect(answer).to_be_visible()
    expect(form).to_be_hidden()
    expect(reader.get_by_role("link", name="Continue")).to_be_hidden()
    reader.emulate_media(media="screen")
    origin = link.partition("/shared/")[0]
    assert not [url for url in asked if not url.startswith((origin, "data:", "blob:"))]

    # Who was not chosen, and a stranger who then signs in.
    other = new_context().new_page()
    enter(other, AUDITOR)
    other.goto(link)
    expect(other.get_by_role("heading", name=GONE)).to_be_visible()
    stranger = new_context().new_page()
    stranger.goto(link)
    stranger.locator("input[name=login]").fill(ADMIN)
    stranger.locator("input[name=password]").fill(PASSWORD)
    stranger.locator("form button[type=submit]").first.click()
    stranger.wait_for_url("**/shared/**")
    expect(stranger.get_by_text("Shared by")).to_be_visible()

    # What is said later comes with an update.
    say(page, "What time is it in Tokyo?")
    expect(page.locator("article.answer")).to_have_count(2)
    expect_idle(page)
    reader.reload()
    expect(reader.locator("article.user-message")).to_have_count(1)
    dialog = open_dialog(page)
    expect(dialog).to_contain_text("It has changed since then.")
    dialog.get_by_role("button", name="Update").click()
    expect(dialog.get_by_text("It has changed since then.")).to_have_count(0)
    reader.reload()
    expect(reader.locator("article.user-message")).to_have_count(2)

    reader.locator(".chat-header").get_by_role("link", name="Continue").click()
    reader.get_by_label("Who answers").select_option("Clock")
    reader.get_by_role("button", name="Continue").click()
    reader.wait_for_url("**/c/**")
    expect(reader.locator("article.user-message")).to_have_count(2)
    say(reader, "What time is it in Oslo?")
    expect(reader.locator("article.answer")).to_have_count(3)
    expect_idle(reader)
    expect(page.locator("article.user-message")).to_have_count(2)

    dialog.get_by_role("button", name="Stop sharing").click()
    dialog.get_by_role("button", name="Stop sharing").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".chat-header").get_by_role("button", name="Shared")).to_have_count(0)
    stranger.reload()
    expect(stranger.get_by_role("heading", name=GONE)).to_be_visible()


def test_anyone_reads_a_public_link_while_the_workspace_allows_it(new_context: NewContext) -> None:
    """SEC-472, REL-997: an owner allows it; the person finds the link in their settings."""
    owner = new_context(bypass_csp=True).new_page()
    enter(owner, ADMIN, at="/w/demo/servers/rules/")
    rule = owner.get_by_role("listitem").filter(has_text="anyone who has the link")
    rule.get_by_role("button", name="Switch on").click()
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer")).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    dialog = open_dialog(page)
    dialog.get_by_role("radio", name="Anyone with the link").check()
    dialog.get_by_role("checkbox", name="What tools were asked").check()
    dialog.get_by_role("button", name="Share", exact=True).click()
    link = dialog.get_by_role("textbox", name="Link").input_value()
    stranger = new_context(bypass_csp=True).new_page()
    stranger.goto(link)
    call = stranger.locator("details.tool-card").first
    call.locator("summary").click()
    expect(call).to_contain_text("Tokyo")
    expect(stranger.get_by_text("Continue in a chat of your own")).to_have_count(0)
    look_at(stranger, "shared-public", 1280)
    dialog.get_by_role("link", name="All my shared chats").click()
    expect(page.get_by_role("heading", name="Shared chats")).to_be_visible()
    look_at(page, "shared-chats", 1280, 390)
    rule.get_by_role("button", name="Switch off").click()
    expect(rule.get_by_role("button", name="Switch on")).to_be_visible()
    stranger.reload()
    expect(stranger.get_by_role("heading", name=GONE)).to_be_visible()
