"""Downloading a copy of one's data, as people do it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from playwright.sync_api import FilePayload, Page, expect

from tests.e2e.accessibility import expect_fits, trying_others
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.looks import look_in_both_themes
from tests.e2e.people import MEMBER, enter, go_to_settings
from tests.e2e.screens import Screen
from tests.fakes.chat_exports import chatgpt


def bring(page: Page, file: FilePayload) -> None:
    """Import a file on the page for that."""
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import chats", exact=True).click()


def test_a_person_finds_their_data_and_gets_it(
    new_context: NewContext, screen: Screen, tmp_path: Path
) -> None:
    """REL-1070, REL-1071, REL-1074: from the settings to a ZIP on the person's own disk, by keys, and erased again."""
    page = new_context(bypass_csp=True).new_page()
    seen = screen.name
    enter(page, MEMBER, at="/w/demo/chat-imports/")
    name = f"before-{seen}.json"
    raw = json.dumps([chatgpt(f"copied-{seen}", f"Beans {seen}")]).encode()
    bring(page, FilePayload(name=name, mimeType="application/json", buffer=raw))
    expect(page.locator("#imports .device-row", has_text=name)).to_contain_text("1 chat imported")
    go_to_settings(page, "Download your data")
    expect(page.get_by_role("heading", name="Download your data")).to_be_visible()
    if page.get_by_text("You have not asked for a copy yet.").is_visible():
        screenshot(page, f"data-copies-none-{seen}")
    page.get_by_role("button", name="Ask for a copy").focus()
    page.keyboard.press("Enter")
    row = page.locator("#copies .device-row").first
    link = row.get_by_role("link", name="Download")
    expect(link).to_be_visible()
    expect(row).to_contain_text("ready")
    with trying_others(page):
        row.scroll_into_view_if_needed()
        look_in_both_themes(page, f"data-copies-{seen}")
    expect_fits(page)
    with page.expect_download() as begun:
        link.click()
    saved = tmp_path / begun.value.suggested_filename
    begun.value.save_as(saved)
    assert saved.name.startswith("trellis-demo-")
    content = saved.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.testzip() is None
        names = packed.namelist()
        assert "README.md" in names
        assert "account/profile.json" in names
        assert any(f"beans-{seen}" in one and one.endswith("/chat.md") for one in names)

    page.goto("/w/demo/chat-imports/")
    name = f"copy-{seen}.zip"
    bring(page, FilePayload(name=name, mimeType="application/zip", buffer=content))
    came = page.locator("#imports .device-row", has_text=name)
    expect(came).to_contain_text("left out")
    expect(came.get_by_text("being read")).to_have_count(0)
    came.scroll_into_view_if_needed()
    screenshot(page, f"imported-copy-{seen}")

    page.goto("/w/demo/your-data/")
    row.get_by_role("button", name="Erase now").click()
    expect(page.get_by_text("The copy is erased.")).to_be_visible()
    expect(row).to_contain_text("erased")
    expect(link).to_have_count(0)
