"""Every dialog of the chat, opened and left with the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import NewContext
from tests.e2e.people import (
    MEMBER,
    approval_card,
    enter,
    expect_idle,
    open_chat,
    open_share,
    open_sidebar,
    say,
    send,
)
from tests.e2e.screens import DESK, Screen

pytestmark = pytest.mark.screens(
    DESK, "1280-dark", reason="opens and leaves all by the keys of a keyboard"
)


def press(button: Locator) -> Locator:
    """Press Enter on it; gives it as what opened the dialog."""
    button.focus()
    button.press("Enter")
    return button


def pick(page: Page, menu: Locator, item: str) -> Locator:
    """Open a menu and choose from it; gives the menu's button, where the focus is to return."""
    press(menu)
    press(page.locator(".menu-pop:popover-open").get_by_role("button", name=item).first)
    return menu


def expect_focus(
    page: Page, name: str | re.Pattern[str], begins_at: str, open_it: Callable[[], Locator]
) -> None:
    """Open a dialog: the focus is where people begin to work. Leave it with Escape: it is where it was."""
    opener = open_it()
    dialog = page.get_by_role("dialog", name=name)
    expect(dialog).to_be_visible()
    expect(dialog.locator(begins_at).first).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()


@pytest.mark.usefixtures("quick")
def test_dialogs_of_the_next_message_begin_where_people_work(new_context: NewContext) -> None:
    """REL-783: on the start page, with two models to choose from."""
    page = new_context().new_page()
    enter(page, MEMBER)
    page.goto("/w/demo/")
    page.locator(".bud-card").get_by_role("button", name="Notes").first.click()
    add = page.get_by_role("button", name="Add to this message")
    composer = page.get_by_role("textbox", name="Message Notes")

    def key(keys: str) -> Locator:
        composer.press(keys)
        return composer

    def from_menu(item: str) -> Callable[[], Locator]:
        return lambda: pick(page, add, item)

    for item, name, begins_at in (
        ("Compare models…", "Compare models", "input[type=checkbox]"),
        ("Servers and tools…", "Servers and tools of this chat", "li button"),
        ("Attach a resource…", "Attach a resource", "input[type=search]"),
    ):
        expect_focus(page, name, begins_at, from_menu(item))
    for place in (".composer", ".chat-header"):
        chip = page.locator(place).get_by_role("button", name=re.compile("^Bud and model"))
        expect_focus(page, "Bud and model", "input", partial(press, chip))
    search = open_sidebar(page).get_by_role("button", name="Search")
    expect_focus(page, "Search chats", "input", lambda: press(search))
    expect_focus(page, "Search chats", "input", lambda: key("Control+k"))
    key("Control+k")
    words = page.get_by_role("combobox", name="Search chats")
    expect(words).to_be_focused()
    page.keyboard.type("peas")
    expect(words).to_have_value("peas")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_focus(page, "Keyboard shortcuts", "a", lambda: key("Control+/"))


PRESS_AT_ONCE = """keys => {
  for (const key of keys) {
    const options = {key, ctrlKey: key === "K", bubbles: true, cancelable: true};
    const event = new KeyboardEvent("keydown", {...options, key: key === "K" ? "k" : key});
    document.activeElement.dispatchEvent(event);
  }
}"""
"""Press keys within one task of the page, so that nothing is drawn between them. K is Ctrl+K."""


@pytest.mark.usefixtures("quick")
def test_keys_pressed_in_the_frame_of_the_shortcut_are_for_the_search(
    new_context: NewContext,
) -> None:
    """REL-800: neither lost nor written into the message; Enter opens what is found, Escape leaves."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Quito?")
    expect_idle(page)
    path = page.url
    page.goto("/w/demo/")
    page.locator(".bud-card").get_by_role("button", name="Notes").first.click()
    composer = page.get_by_role("textbox", name="Message Notes")
    composer.fill("A draft")
    words = page.get_by_role("combobox", name="Search chats")

    page.evaluate(PRESS_AT_ONCE, [*"Kpeass", "Backspace"])
    expect(words).to_be_focused()
    expect(words).to_have_value("peas")
    page.keyboard.type(" now")
    expect(words).to_have_value("peas now")
    page.keyboard.press("Escape")
    expect(composer).to_be_focused()
    page.keyboard.type("s")
    expect(composer).to_have_value("A drafts")

    page.evaluate(PRESS_AT_ONCE, [*"Kab", "Escape"])
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(composer).to_be_focused()
    page.keyboard.type("!")
    expect(composer).to_have_value("A drafts!")

    page.evaluate(PRESS_AT_ONCE, [*"KQuito", "Enter"])
    page.wait_for_url(path)


@pytest.mark.usefixtures("quick")
def test_dialogs_of_a_chat_begin_where_people_work(new_context: NewContext) -> None:
    """REL-783: of its answers, of what came with a message, and of what waits."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Notes", "Show me the formatting")
    composer = page.get_by_role("textbox", name="Message").first
    answer = page.locator("article.answer").last
    expect(answer.locator(".md-diagram img")).to_be_visible()
    expect_idle(page)  # at its end an answer is drawn once more, now that its notes are known
    link = answer.get_by_role("link", name="link", exact=True)
    expect_focus(page, "Open this link?", "input[type=checkbox]", lambda: press(link))
    press(link)
    box = page.get_by_role("dialog").locator("input")
    expect(box).to_be_focused()
    # With Escape, and then again at once: before the browser has said that the former one is closed.
    link.evaluate("link => { document.querySelector('dialog[open]').requestClose(); link.click() }")
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn)))")
    expect(box).to_be_visible()
    link.evaluate("link => link.replaceWith(link.text)")  # as when an answer grows under the dialog
    page.keyboard.press("Escape")
    expect(composer).to_be_focused()
    otherwise = answer.get_by_role("button", name="Answer in another way")
    expect_focus(
        page, "Compare this answer with", "li button", lambda: pick(page, otherwise, "Compare")
    )

    def use_prompt() -> Locator:
        composer.fill("/tid")
        expect(page.get_by_role("option")).to_contain_text("Tidy up a note")
        composer.press("Enter")
        return composer

    expect_focus(page, "Tidy up a note", "input", use_prompt)
    page.keyboard.type("Sum up #all")  # where the focus is, one can type
    expect(page.get_by_role("option")).to_contain_text("All notes")
    composer.press("Enter")
    send(page)
    expect_idle(page)
    attached = page.get_by_role("list", name="Attachments").get_by_role("button")
    expect_focus(page, "All notes", "button:not([aria-label=Close])", lambda: press(attached))
    say(page, 'Delete the note "old"')
    expect(approval_card(page)).to_be_visible()
    waiting = page.locator(".waiting-button:visible").first
    expect_focus(page, re.compile("^Waiting"), "[role=group] button", lambda: press(waiting))


def test_dialogs_of_the_sidebar_begin_where_people_work(
    new_context: NewContext, screen: Screen
) -> None:
    """REL-783, REL-876: of folders and chats, and of chats that were deleted, also with a long title."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Caracas?")
    expect_idle(page)
    side = open_sidebar(page)
    new = side.get_by_role("button", name="New folder")
    expect_focus(page, "New folder", "input", lambda: press(new))
    press(new)
    page.get_by_role("dialog").get_by_label("Name").fill(f"Tall {screen.theme}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    folder = side.get_by_role("button", name=f"More for Tall {screen.theme}")
    expect_focus(page, "Change folder", "input", lambda: pick(page, folder, "Name and colour…"))
    expect_focus(
        page,
        re.compile("^Delete"),
        "button:has-text('Cancel')",
        lambda: pick(page, folder, "Delete"),
    )
    row = side.locator("li.chat-row", has_text="Caracas").first
    pick(page, row.get_by_role("button", name=re.compile("^More for")), "Rename")
    page.get_by_role("dialog").get_by_role("textbox").fill("Caracas " * 24)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    chat = row.get_by_role("button", name=re.compile("^More for"))
    expect_focus(page, re.compile("^Rename"), "input", lambda: pick(page, chat, "Rename"))
    pick(page, chat, "Delete")
    press(page.get_by_role("dialog").get_by_role("button", name="Cancel"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(chat).to_be_focused()  # left with a button of its own, as with Escape
    expect_focus(page, re.compile("^Move"), "li button", lambda: pick(page, chat, "Move to folder"))
    expect_focus(
        page, re.compile("^Delete"), "button:has-text('Cancel')", lambda: pick(page, chat, "Delete")
    )
    pick(page, chat, "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
    expect(side.locator("li.chat-row", has_text="Caracas")).to_have_count(0)
    press(side.get_by_role("button", name="Archive"))
    deleted = side.get_by_role("button", name="Recently deleted")
    expect_focus(page, "Recently deleted", "button:has-text('Restore')", lambda: press(deleted))
    press(deleted)
    dialog = page.get_by_role("dialog", name="Recently deleted")
    expect(dialog.locator(".deleted-row", has_text="Caracas").first).to_be_visible()
    assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")


@pytest.mark.usefixtures("quick")
def test_what_a_dialog_does_is_in_sight_in_a_low_window(new_context: NewContext) -> None:
    """REL-1803, REL-1826: its heading, Close and its buttons stand wholly inside; what has the focus is not under them."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Notes", 'Read the note "ideas"')
    expect_idle(page)

    def by_menu(item: str) -> Callable[[], None]:
        def open_it() -> None:
            page.locator(".chat-header").get_by_role("button", name="More for").click()
            page.locator(".menu-pop:popover-open").get_by_role("button", name=item).click()

        return open_it

    def share() -> None:
        open_share(page)
        # Those who can be chosen come a moment later, and make the dialog higher.
        expect(page.get_by_role("dialog").get_by_text("Ada Admin")).to_be_visible()

    def prompt() -> None:
        page.get_by_role("textbox", name="Message").first.fill("/tidy")
        page.get_by_role("option").first.click()

    for width, height in ((900, 600), (390, 660), (1280, 600), (640, 360)):
        page.set_viewport_size({"width": width, "height": height})
        for open_it in (share, by_menu("Rename"), by_menu("Delete"), prompt):
            open_it()
            dialog = page.get_by_role("dialog")
            foot = dialog.locator(".dialog-foot")
            for button in foot.get_by_role("button").all():
                expect(button).to_be_in_viewport(ratio=1)
            top = foot.evaluate("one => one.getBoundingClientRect().top")
            head = dialog.locator("header")
            bottom = head.evaluate("one => one.getBoundingClientRect().bottom")
            for control in dialog.locator("input").all():
                control.focus()
                expect(head.get_by_role("heading")).to_be_in_viewport(ratio=1)
                expect(head.get_by_role("button", name="Close")).to_be_in_viewport(ratio=1)
                assert control.evaluate("one => one.getBoundingClientRect().top") >= bottom
                assert control.evaluate("one => one.getBoundingClientRect().bottom") <= top
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
