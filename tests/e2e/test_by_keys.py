"""What keys open and close."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import ADMIN, MEMBER, enter, expect_idle, open_chat
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="is about keys of a keyboard")


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
    page.evaluate("document.activeElement.blur()")  # as for a moment after a dialog has closed
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


def test_people_choose_keys_of_their_own(new_context: NewContext) -> None:
    """REL-1050: they hold in every page that opens; what cannot be pressed is told, and all can be taken back."""
    context = new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    enter(page, MEMBER, at="/account/shortcuts/")
    change = page.get_by_role("button", name="Change the keys of “New chat”")
    recorder = page.locator(".shortcut-recorder")
    change.click()
    for keys, message in (("j", "Hold Ctrl"), ("Control+k", "“Search chats” has these keys.")):
        page.keyboard.press(keys)
        expect(recorder).to_contain_text(message)
    expect_no_faults(page)
    page.keyboard.press("Escape")
    expect(recorder).to_have_count(0)
    change.click()
    page.keyboard.press("Alt+n")
    expect(page.get_by_text("Saved.")).to_be_visible()
    row = page.locator(".shortcut-group dl > div", has_text="New chat").first
    expect(row).to_contain_text("AltN")
    screenshot(page, "own-shortcuts")

    open_chat(page, "Clock", "Show me all formats")
    expect_idle(page)
    for keys, copied in (
        ("Control+Shift+Semicolon", "@@ -1,3 +1,3 @@"),
        ("Control+Shift+C", "Text can be **bold**"),
    ):
        page.keyboard.press(keys)
        page.wait_for_function(
            "async start => (await navigator.clipboard.readText()).startsWith(start)", arg=copied
        )
    chat = page.url
    page.keyboard.press("Control+Shift+S")
    sidebar = page.locator("#sidebar")
    expect(sidebar).to_be_hidden()
    page.reload()
    expect(sidebar).to_be_hidden()
    expect_no_faults(page)
    page.get_by_role("button", name="Open the sidebar").click()
    hide = page.get_by_role("button", name="Hide the sidebar")
    expect(hide).to_be_focused()
    hide.press("Enter")
    expect(page.get_by_role("button", name="Open the sidebar")).to_be_focused()
    page.keyboard.press("Control+Shift+S")
    expect(hide).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    assert page.url == chat
    page.keyboard.press("Alt+n")
    expect(page).to_have_url(re.compile("/w/demo/$"))
    page.keyboard.press("Control+Period")

    expect(page.get_by_role("heading", name="Profile", level=1)).to_be_visible()
    page.goto("/account/shortcuts/")
    switch = page.get_by_role("checkbox", name="Use the shortcuts of the chat")
    for change_them in (page.get_by_role("button", name="Reset all keys").click, switch.uncheck):
        # Each is waited for: “Saved.” may still be there from the one before.
        with page.expect_response(lambda answer: answer.request.method != "GET") as saved:
            change_them()
        assert saved.value.ok
    expect(row).to_contain_text("CtrlShiftO")
    page.goto("/w/demo/")
    page.get_by_role("textbox", name="Message").press("Control+k")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto("/account/shortcuts/")
    expect(switch).not_to_be_checked()
    switch.check()
    expect(page.get_by_text("Saved.")).to_be_visible()


_HIDDEN = """() => {
    const focused = document.activeElement;
    if (!focused || focused === document.body || focused.matches(".skip-link, textarea")) return "";
    const box = focused.getBoundingClientRect();
    if (box.height > innerHeight / 2) return "";
    const above = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const own = above && (focused.contains(above) || above.contains(focused));
    const ofLabel = above && [...(focused.labels ?? [])].some((label) => label.contains(above));
    return own || ofLabel ? "" : `${focused.outerHTML.slice(0, 120)} at ${Math.round(box.y)}`;
}"""


def _hidden_stops(page: Page, most: int) -> list[str]:
    """Walk a page by the Tab key; gives what has the focus behind something else."""
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        if hidden := page.evaluate(_HIDDEN):
            found.append(hidden)
    return found


def test_nothing_that_has_the_focus_hides_behind_a_bar(new_context: NewContext) -> None:
    """REL-1310: neither behind the bar at the top nor behind the buttons at the bottom of forms and lists."""
    page = new_context(viewport={"width": 1280, "height": 700}).new_page()
    enter(page, ADMIN, at="/w/demo/buds/")
    bud = page.get_by_role("link", name=re.compile("Clock")).first.get_attribute("href")
    assert bud is not None
    for address, most in (
        ("/w/demo/audit/?show=entries", 60),
        (bud, 40),
        ("/admin/audit/auditentry/", 90),
        ("/admin/chat/modelprovider/add/", 60),
    ):
        page.goto(address)
        # A region that scrolls takes the focus before what is in it.
        page.locator("h1, #content-main, main").first.wait_for()
        assert _hidden_stops(page, most) == [], address


def test_a_switch_of_the_admin_shows_that_it_has_the_focus(new_context: NewContext) -> None:
    """REL-1311: as fields and buttons do, in both themes."""
    for theme in ("light", "dark"):
        page = new_context(color_scheme=theme).new_page()
        enter(page, ADMIN, at="/admin/chat/modelprovider/add/")
        page.locator("#id_new_api_key").focus()
        page.keyboard.press("Tab")
        switch = page.locator("#id_is_active")
        expect(switch).to_be_focused()
        expect(switch).to_have_css("outline-style", "solid")
        screenshot(page, f"focus-on-a-switch-{theme}")


def test_the_focus_stays_where_somebody_works(new_context: NewContext) -> None:
    """REL-1312: with a button that is disabled while it works, and where a row goes with its button."""
    page = new_context().new_page()
    enter(page, ADMIN, at="/w/demo/servers/")
    # Only a search lists servers in short, so that one can be made short again.
    expect(page.get_by_role("button", name=re.compile("^Hide the details"))).to_have_count(0)
    test = page.get_by_role("button", name="Test connection of time")
    test.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-report]").first).to_be_visible()
    expect(test).to_be_focused()
    page.goto("/w/demo/buds/")
    page.get_by_role("link", name=re.compile("Clock")).first.click()
    page.get_by_role("button", name="Add a check").press("Enter")
    add = page.get_by_role("button", name="Add a tool call")
    add.press("Enter")
    page.get_by_role("button", name=re.compile("^Remove the call")).press("Enter")
    expect(add).to_be_focused()


def test_people_type_without_a_click(new_context: NewContext) -> None:
    """REL-1661, REL-1662: on the start page, after a model or bud was chosen, after a button sent, and after a stop."""
    page = new_context(viewport={"width": 1280, "height": 800}).new_page()
    enter(page, MEMBER)
    field = page.get_by_role("textbox", name="Message").first
    expect(field).to_be_focused()
    page.keyboard.type("What time is it in Tokyo?")
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/**")
    # The new page is idle for a moment before its answer begins.
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("(Asia/Tokyo)")
    expect_idle(page)

    page.locator(".composer-bar").get_by_role("button", name=re.compile("^Bud and model")).click()
    page.get_by_role("combobox", name="Search buds and models").fill("Notes")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.type('Delete the note "old"')
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".approval")).to_be_visible()

    page.get_by_role("button", name="Stop").press("Enter")
    expect(field).to_be_focused()
    expect_idle(page)
    expect(field).to_be_focused()
    expect_no_faults(page, "after a stop")
