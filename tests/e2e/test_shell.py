"""The frame around every page: where am I, where can I go, who am I, what waits for me. The same everywhere."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_fits
from tests.e2e.conftest import NewContext
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import ADMIN, MEMBER, approval_card, enter, open_chat, open_sidebar
from tests.e2e.screens import DESK

ROOMS = ("Chat", "Servers", "Audit", "Admin")
PAGES = {"Servers": "/w/demo/servers/", "Audit": "/w/demo/audit/", "Admin": "/admin/"}
OF_PERSON = (
    *(
        "Waiting for you",
        "Settings",
        "Password",
        "API tokens",
        "Tool permissions",
        "Keyboard shortcuts",
        "My connections",
        "My activity",
    ),
    *("System", "Light", "Dark", "Sign out"),
)


def entries(page: Page) -> list[str]:
    """What the menu of the person offers, in order."""
    page.get_by_role("button", name=re.compile("^Your account")).click()
    menu = page.locator(".menu-pop:popover-open")
    texts = menu.locator("a, button").all_inner_texts()
    page.keyboard.press("Escape")
    return [text.strip() for text in texts]


@pytest.mark.screens(DESK, reason="sets its sizes and themes itself")
@pytest.mark.parametrize("width", [1280, 360])
def test_every_page_has_the_same_frame(new_context: NewContext, width: int) -> None:
    """REL-589: brand, navigation, search, bell and menu, also on phones and in the admin; in the chat beside the conversations."""
    page = new_context(viewport={"width": width, "height": 800}, bypass_csp=True).new_page()
    enter(page, ADMIN, at="/w/demo/servers/")
    for here, path in PAGES.items():
        page.goto(path)
        rooms = page.get_by_role("navigation", name="Main").get_by_role("link")
        assert [text.strip() for text in rooms.all_text_contents()] == list(ROOMS), here
        expect(page.get_by_role("link", name=here, exact=True).first).to_have_attribute(
            "aria-current", "page"
        )
        expect(page.get_by_role("link", name="Trellis", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Search chats")).to_be_in_viewport(ratio=1)
        page.get_by_role("button", name=re.compile("^Notices")).click()
        expect(page.locator("#bell-menu")).to_be_visible()
        page.keyboard.press("Escape")
        assert entries(page) == list(OF_PERSON), here
        look_in_both_themes(page, f"shell-{here}-{width}", was_seen=width != 1280)
        expect_fits(page, here)
    page.goto("/w/demo/servers/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search chats")).to_be_visible()
    page.goto("/w/demo/")
    if width < 800:
        page.get_by_role("button", name="Open the sidebar").click()
    sidebar = page.get_by_role("navigation", name="Chats")
    for room in ROOMS[1:]:
        expect(sidebar.get_by_role("link", name=room, exact=True)).to_be_visible()
    expect(sidebar.get_by_role("button", name=re.compile("^Notices"))).to_be_visible()
    assert entries(page) == list(OF_PERSON)


def test_what_waits_is_told_outside_the_chat(page: Page) -> None:
    """REL-590, REL-719: with its number, and one click away from where it is decided; and the way back to the chat."""
    enter(page, MEMBER)
    open_chat(page, "Notes", 'Delete the note "old"')
    expect(approval_card(page)).to_be_visible()
    chat = page.url
    open_sidebar(page).get_by_role("link", name="Servers").click()
    back = page.get_by_role("navigation", name="Main").get_by_role("link", name="Chat")
    expect(back).to_have_attribute("href", re.compile("/c/"))  # once the page's script has run
    back.click()
    expect(page).to_have_url(chat)
    page.goto("/w/demo/servers/")
    page.get_by_role("link", name=re.compile(r"^Waiting for you: \d+ items?$")).click()
    dialog = page.get_by_role("dialog", name="Waiting for you")
    cards = dialog.locator(".approval")
    expect(cards.first).to_be_visible()
    expect(page).to_have_url(re.compile("/w/demo/$"))
    while before := cards.count():
        dialog.get_by_role("button", name="Refuse…").first.click()
        dialog.get_by_role("button", name="Refuse the call").click()
        expect(cards).to_have_count(before - 1)
    with page.expect_response("**/w/demo/waiting/") as response:
        page.goto("/w/demo/servers/")
    assert response.value.text().strip() == ""


@pytest.mark.screens(DESK, reason="sets its sizes and themes itself")
def test_what_waits_appears_and_goes_while_another_page_is_open(new_context: NewContext) -> None:
    """REL-665: the bar asks again when something changed, on pages of the product and of the admin, and not before."""
    context = new_context(viewport={"width": 1280, "height": 800})
    talk, page, admin = context.new_page(), context.new_page(), context.new_page()
    enter(page, ADMIN, at="/w/demo/servers/")
    admin.goto("/admin/")
    waits = [one.locator(".waiting-button") for one in (page, admin)]
    for count in waits:
        expect(count).to_have_count(0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_chat(talk, "Notes", 'Delete the note "old"')
    expect(approval_card(talk)).to_be_visible()
    for one, count in zip((page, admin), waits, strict=True):
        one.bring_to_front()
        expect(count).to_have_attribute("aria-label", "Waiting for you: 1 item")
    talk.bring_to_front()
    approval_card(talk).get_by_role("button", name="Refuse…").click()
    approval_card(talk).get_by_role("button", name="Refuse the call").click()
    expect(approval_card(talk)).to_have_count(0)
    for one, count in zip((page, admin), waits, strict=True):
        one.bring_to_front()
        expect(count).to_have_count(0)
    times_asked = sum(url.endswith("/w/demo/waiting/") for url in asked)
    assert 2 <= times_asked <= 12, asked
