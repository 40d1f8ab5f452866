"""Settings that are about how people see and use Trellis: its theme and its keys."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests import documents
from tests.e2e.accessibility import expect_fits, expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import ADMIN, MEMBER, enter, open_chat, sign_in, tool_card
from tests.e2e.screens import DESK

pytestmark = pytest.mark.screens(DESK, reason="sets its sizes and themes itself")


def theme_of(page: Page) -> str:
    """Which theme the page shows; empty: the device decides."""
    return str(page.evaluate("document.documentElement.dataset.theme ?? ''"))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_theme_follows_the_person(new_context: NewContext, width: int) -> None:
    """REL-587, REL-2448: chosen in the chat, it is there on the next device before the first paint, and in the admin too.

    Where the system gives the colours, the tab of the page still looks chosen.
    """
    size = {"width": width, "height": 800}
    here = new_context(viewport=size, color_scheme="light").new_page()
    enter(here, ADMIN)
    if width < 800:
        here.get_by_role("button", name="Open the sidebar").click()
    here.get_by_role("button", name="Account").click()
    with here.expect_response("**/api/profile/"):
        here.get_by_role("button", name="Dark", exact=True).click()
    assert theme_of(here) == "dark"

    device = new_context(viewport=size, color_scheme="light", bypass_csp=True)
    there = device.new_page()
    there.goto("/accounts/login/")
    there.evaluate("localStorage.setItem('trellis.theme', 'light')")
    there.reload()
    assert theme_of(there) == "light", "a visitor keeps the browser's"
    sign_in(there, ADMIN)
    assert theme_of(there) == "dark"
    there.goto("/admin/")
    expect(there.locator("html")).to_have_class("dark")
    there.goto("/account/appearance/")
    expect(there.get_by_label("Dark")).to_be_checked()
    screenshot(there, f"appearance-{width}-dark")
    expect_no_faults(there)
    there.emulate_media(forced_colors="active")
    grounds = there.locator(".settings-list a").evaluate_all(
        "links => links.slice(0, 2).map(link => getComputedStyle(link).backgroundColor)"
    )
    assert grounds[0] != grounds[1], "the second one is open"
    there.emulate_media(forced_colors="none")
    there.get_by_role("button", name="Your account").click()
    with there.expect_response("**/account/appearance/?format=json"):
        there.get_by_role("button", name="Light", exact=True).click()
    assert theme_of(there) == "light"
    here.reload()
    assert theme_of(here) == "light"
    there.reload()
    there.get_by_label("As the device").check()
    there.get_by_role("button", name="Save").click()
    expect(there.get_by_text("Saved.")).to_be_visible()
    assert theme_of(there) == ""
    here.goto("/admin/")
    expect(here.locator("html")).not_to_have_class("dark")


@pytest.mark.parametrize("width", [1280, 390])
def test_time_zone_and_formats_follow_the_person(new_context: NewContext, width: int) -> None:
    """REL-851, REL-853, REL-857: chosen once, they hold in the chat, the log and the admin, whatever the browser says."""
    browser = {"locale": "de-DE", "timezone_id": "America/New_York", "bypass_csp": True}
    page = new_context(viewport={"width": width, "height": 800}, **browser).new_page()
    enter(page, ADMIN)
    open_chat(page, "Clock", "What time is it in Berlin?")
    started = tool_card(page).get_by_text("started")
    tool_card(page).get_by_role("button").first.click()
    expect(started).to_contain_text(re.compile(r"started \d\d\.\d\d\.\d{4}, \d\d:\d\d"))
    chat = page.url

    page.goto("/account/formats/")
    example = page.locator("[data-formats-example]")
    expect(example).to_have_text(re.compile(r"\d\d\.\d\d\.\d{4}, \d\d:\d\d · 1\.234,5"))
    expect(page.get_by_label("Time zone")).to_contain_text("As my browser says (America/New York)")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_label("2026-11-26").check()
    page.get_by_label("12 hours").check()
    page.get_by_label("1 234,5").check()
    written = re.compile(r"\d{4}-\d\d-\d\d, \d+:\d\d [AP]M")
    expect(example).to_have_text(re.compile(written.pattern + r" · 1\s234,5"))
    look_in_both_themes(page, f"formats-{width}")
    expect_fits(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()

    in_tokyo = datetime.now(ZoneInfo("Asia/Tokyo"))
    page.goto("/w/demo/audit/")
    cell = page.locator("#entries time").first
    expect(cell).to_have_text(re.compile(rf"{in_tokyo:%Y-%m-%d}, \d+:\d\d:\d\d [AP]M"))
    page.goto(chat)
    tool_card(page).get_by_role("button").first.click()
    expect(started).to_contain_text(written)
    page.goto("/admin/workspaces/membership/")
    expect(page.get_by_text(written).first).to_be_visible()

    page.goto("/account/formats/")
    page.get_by_label("Time zone").select_option("")
    for browsers in page.get_by_label("As my browser says", exact=True).all():
        browsers.check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.goto(chat)
    tool_card(page).get_by_role("button").first.click()
    expect(started).to_contain_text(re.compile(r"started \d\d\.\d\d\.\d{4}, \d\d:\d\d"))


@pytest.mark.parametrize("width", [1280, 390])
def test_all_shortcuts_are_on_one_page(new_context: NewContext, width: int) -> None:
    """REL-588: from the chat's own list, and from the menu of every page; only of pages that the person has."""
    page = new_context(viewport={"width": width, "height": 800}, bypass_csp=True).new_page()
    enter(page, MEMBER)
    page.get_by_role("textbox", name="Message").wait_for()
    page.keyboard.press("Control+/")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_role("region", name="Writing a message")).to_be_visible()
    expect(dialog.get_by_role("region", name="Other pages")).to_have_count(0)
    expect_no_faults(page)
    dialog.get_by_role("link", name="Shortcuts of all pages").click()
    expect(page.get_by_role("heading", name="Keyboard shortcuts", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Other pages")).to_be_visible()
    expect(page.get_by_role("region", name="Audit log")).to_have_count(0)
    look_in_both_themes(page, f"shortcuts-{width}")
    expect_fits(page)
    admin = new_context().new_page()
    enter(admin, ADMIN, at="/w/demo/servers/")
    admin.get_by_role("button", name="Your account").click()
    admin.get_by_role("link", name="Keyboard shortcuts").click()
    for name in ("Audit log", "Admin"):
        expect(admin.get_by_role("region", name=name)).to_be_visible()


def test_a_person_gives_themselves_a_picture(new_context: NewContext, tmp_path: Path) -> None:
    """REL-1229, REL-1230: it stands at the head of pages, in the chat's menu and on the page of people."""
    photo = tmp_path / "me.png"
    photo.write_bytes(documents.png(600, 400))
    page = new_context(bypass_csp=True).new_page()
    enter(page, ADMIN, at="/account/")
    field = page.get_by_label("Picture", exact=True)
    field.set_input_files({"name": "me.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"})
    page.get_by_role("button", name="Save the picture").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be shown")
    expect_no_faults(page)
    field.set_input_files(photo)
    page.get_by_role("button", name="Save the picture").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    head = page.get_by_role("button", name="Your account").locator("img")
    expect(head).to_be_visible()
    expect(head).to_have_js_property("naturalWidth", 256)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="light" if width == 1280 else "dark")
        expect_fits(page, f"profile {width}")
        expect_no_faults(page, f"profile {width}")
        screenshot(page, f"profile-picture-{width}")
    page.goto("/w/demo/people/")
    expect(page.locator("th .user-tile img")).to_have_count(1)
    expect_fits(page, "people")
    expect_no_faults(page, "people")
    screenshot(page, "people-with-a-picture")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/w/demo/")
    expect(page.get_by_role("button", name="Account").locator("img")).to_be_visible()
    page.goto("/account/")
    page.get_by_role("button", name="Remove the picture").click()
    expect(head).to_have_count(0)


def test_a_browser_that_is_too_old_says_so(new_context: NewContext) -> None:
    """REL-2283: as people sign in, and above a chat that stays empty in it."""
    page = new_context().new_page()
    note = page.get_by_text("This browser is too old for Trellis.")
    page.goto("/accounts/login/")
    expect(note).to_be_hidden()
    page.add_init_script("delete Map.groupBy")
    page.reload()
    expect(note).to_be_visible()
    sign_in(page, MEMBER)
    expect(note).to_be_visible()
