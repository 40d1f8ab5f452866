"""The demo's people, and what they do again and again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from config.demo.people import PASSWORD

MEMBER = "member@demo.example"
ADMIN = "admin@demo.example"
AUDITOR = "auditor@demo.example"


HOME = "/w/demo/"
_SIGN_IN = "/accounts/login/"
_kept: dict[str, list[Any]] = {}
"""Of each person: the cookie of a session that they began."""


def member_of_demo(email: str, name: str) -> str:
    """The code, for the server's shell, that makes somebody a new member of the demo workspace."""
    return f"""
from config.demo.people import PASSWORD
from workspaces.models import Membership, User, Workspace
User.objects.filter(email="{email}").delete()
person = User.objects.create_user("{email}", PASSWORD, name="{name}", is_confirmed=True)
Membership.objects.create(workspace=Workspace.objects.get(slug="demo"), user=person)
"""


def sign_in(page: Page, email: str) -> None:
    """Sign in to the demo workspace through the login form, as people do; it leads to the workspace."""
    page.goto(_SIGN_IN)
    page.locator("input[name=login]").fill(email)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form button[type=submit]").first.click()
    page.wait_for_url("**/w/**")


def enter(page: Page, email: str, at: str = HOME) -> None:
    """Be at a page of the demo workspace, as that person.

    They fill the login form once. A browser that holds nothing yet is then given the cookie of that session, and the
    form is filled again where it has ended meanwhile. Whoever needs a session of their own signs in.
    """
    context = page.context
    if (kept := _kept.get(email)) and not context.cookies():
        context.add_cookies(kept)
        page.goto(at)
        if _SIGN_IN not in page.url:
            return
        context.clear_cookies()
    sign_in(page, email)
    _kept[email] = [
        one for one in context.cookies() if one.get("name") == settings.SESSION_COOKIE_NAME
    ]
    if at != HOME:
        page.goto(at)


def open_sidebar(page: Page) -> Locator:
    """Have the list of chats in sight, and give it: a narrow screen shows it over the page, for as long as one wants."""
    sidebar = page.locator("#sidebar")
    sidebar.wait_for(state="attached")
    button = page.get_by_role("button", name="Open the sidebar")
    if button.is_visible() and sidebar.get_attribute("data-open") != "true":
        button.click()
    expect(sidebar).to_be_visible()
    return sidebar


def leave_sidebar(page: Page) -> None:
    """Go back to the page that the list of chats lies over, if it does, by a tap beside it."""
    veil = page.locator(".sidebar-veil")
    if veil.is_visible():
        size = page.viewport_size
        assert size is not None
        veil.click(position={"x": size["width"] - 10, "y": size["height"] / 2})
        expect(veil).to_have_count(0)


def go_to_settings(page: Page, name: str) -> None:
    """Go from a page of the person's settings to another; where the screen is narrow, a menu has all of them."""
    menu = page.get_by_role("button", name=re.compile("^Settings"))
    if menu.is_visible():
        menu.click()
    page.get_by_role("navigation", name="Settings").get_by_role("link", name=name).click()


def open_account(page: Page) -> None:
    """Open the menu of the person in the list of chats."""
    open_sidebar(page).get_by_role("button", name="Your account and settings").click()


def open_search(page: Page) -> Locator:
    """Open the search for chats, by its keys or, where there are none, by its button. Gives its field."""
    if is_touched(page):
        open_sidebar(page).get_by_role("button", name="Search").click()
    else:
        page.keyboard.press("Control+k")
    return page.get_by_role("combobox", name="Search chats")


def open_share(page: Page) -> None:
    """Open the dialog that shares the open chat. On a phone its button is in the chat's menu, until it is shared."""
    header = page.locator(".chat-header")
    header.get_by_role("button", name="More for").wait_for()
    button = header.get_by_role("button", name=re.compile("^Shared?$")).filter(visible=True)
    if button.count():
        button.click()
    else:
        header.get_by_role("button", name="More for").click()
        page.get_by_role("button", name="Share…", exact=True).click()


def open_chat(page: Page, bud: str, question: str) -> None:
    """Begin a conversation with a bud by writing to it."""
    if urlsplit(page.url).path != HOME:
        page.goto(HOME)
    leave_sidebar(page)
    page.locator(".bud-card").get_by_role("button", name=bud).first.click()
    say(page, question)
    page.wait_for_url("**/c/**")
    # Its code comes after its address: what is pressed in between is gone with the page that was there.
    expect(page.get_by_role("log", name="Conversation")).to_have_count(1)


def say(page: Page, text: str) -> None:
    """Write into the composer and send."""
    page.get_by_role("textbox", name="Message").first.fill(text)
    send(page)


def is_touched(page: Page) -> bool:
    """Whether its screen is used with fingers, and has a keyboard only while somebody writes."""
    return bool(page.evaluate("matchMedia('(pointer: coarse)').matches"))


def send(page: Page) -> None:
    """Send what is written: with Enter, or where that makes a line, with the button."""
    if is_touched(page):
        page.locator(".composer-bar button[type=submit]").click()
    else:
        page.get_by_role("textbox", name="Message").first.press("Enter")


def takes_from_input_method(field: Locator, key: str) -> bool:
    """Whether the page acts on a key that belongs to an input method, as Safari reports it: by its code alone."""
    event = f"{{key: '{key}', keyCode: 229, bubbles: true, cancelable: true}}"
    return not field.evaluate(f"node => node.dispatchEvent(new KeyboardEvent('keydown', {event}))")


def tool_card(page: Page) -> Locator:
    """The newest tool card."""
    return page.locator("article.tool-card").last


def approval_card(page: Page) -> Locator:
    """The card that waits for a decision."""
    return page.locator(".approval").last


def expect_idle(page: Page) -> None:
    """Wait until the turn is over: the composer offers Send, not Stop."""
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.locator("article.answer[aria-busy=true]")).to_have_count(0)


def attach(page: Page, folder: Path, *files: tuple[str, bytes]) -> None:
    """Choose files of a folder by the composer's menu."""
    for name, content in files:
        (folder / name).write_bytes(content)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add to this message").click()
        page.get_by_role("button", name="Add files…").click()
    chooser.value.set_files([folder / name for name, _ in files])
