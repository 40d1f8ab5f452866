"""Importing chats, as people do it."""

from __future__ import annotations

import json

from playwright.sync_api import FilePayload, expect

from tests.e2e.accessibility import expect_fits, trying_others
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import MEMBER, enter, go_to_settings, open_search
from tests.e2e.screens import Screen
from tests.fakes.chat_exports import chatgpt, claude


def test_chats_come_along_and_go_as_one(new_context: NewContext, screen: Screen) -> None:
    """REL-1013, REL-1014, REL-1015: from the settings to the list of chats, an answer with its branch, and back."""
    page = new_context(bypass_csp=True).new_page()
    name = screen.name
    enter(page, MEMBER, at="/w/demo/reminders/")
    go_to_settings(page, "Import chats")
    imported = [chatgpt(f"gpt-{name}", f"Radishes {name}"), claude(f"claude-{name}"), 7]
    raw = json.dumps(imported).encode()
    file = FilePayload(name=f"export-{name}.json", mimeType="application/json", buffer=raw)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Bud that goes on with these chats").select_option("Notes")
    page.get_by_role("button", name="Import chats", exact=True).click()
    row = page.locator("#imports .device-row", has_text=f"export-{name}.json")
    expect(row).to_contain_text("2 chats imported")
    expect(row).to_contain_text("Notes goes on with them")
    row.get_by_text("1 chat was left out").click()
    expect(row).to_contain_text("It is no chat that Trellis can read.")
    with trying_others(page):
        look_in_both_themes(page, f"imports-{name}")
    expect_fits(page)

    page.goto("/w/demo/")
    # They keep their dates, so newer chats stand above them in the list.
    open_search(page).fill(f"Radishes {name}")
    page.get_by_role("option", name=f"Radishes {name}").first.click()
    expect(page.locator("article.answer")).to_contain_text("April")
    expect(page.locator("article.user-message")).to_contain_text("When do I sow radishes?")
    page.get_by_role("button", name="Later version").click()
    expect(page.locator("article.answer")).to_contain_text("In July.")
    screenshot(page, f"imported-chat-{name}")

    page.goto("/w/demo/chat-imports/")
    row.get_by_role("button", name="Remove these 2 chats").click()
    expect(page.get_by_text("2 chats were removed.")).to_be_visible()
    row.get_by_role("button", name="Bring the chats of").click()
    expect(page.get_by_text("2 chats are back.")).to_be_visible()
    row.get_by_role("button", name="Remove these 2 chats").click()
    expect(row.get_by_text("removed", exact=True)).to_be_visible()
