"""Chats in folders, several at once, and searches narrowed by filters, as people do it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.conftest import RunningTrellis, forget_chats
from tests.e2e.people import HOME, MEMBER, enter, expect_idle, open_chat, open_sidebar

FORGET = """
from chat.models import Folder
Folder.objects.across_workspaces().filter(name="Far away").delete()
"""


def test_chats_are_sorted_selected_and_found_by_filters(
    page: Page, trellis: RunningTrellis
) -> None:
    """REL-427, REL-428, REL-429, REL-755, REL-1242: a folder, in another tab too, and its name once more, a move, an archive of several and its undo, a filter and its typo."""
    forget_chats(trellis, "Madrid")
    trellis.shell(FORGET)
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Madrid?")
    expect_idle(page)
    other = page.context.new_page()
    other.goto(HOME)
    expect(open_sidebar(other).locator("li.chat-row").first).to_be_visible()
    open_sidebar(page).get_by_role("button", name="New folder").click()
    dialog = page.get_by_role("dialog", name="New folder")
    dialog.get_by_label("Name").fill("Far away")
    dialog.get_by_role("button", name="Save").click()
    expect(other.get_by_role("button", name="Far away", exact=True)).to_be_visible()
    other.close()
    open_sidebar(page).get_by_role("button", name="New folder").click()
    dialog.get_by_label("Name").fill("Far away")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("You have a folder of this name already.")
    page.keyboard.press("Escape")
    row = open_sidebar(page).locator("li.chat-row", has_text="Madrid").first
    row.hover()
    row.get_by_role("button").click()
    page.get_by_role("button", name="Move to folder…").click()
    page.get_by_role("dialog").get_by_role("button", name="Far away").click()
    expect(row.locator(".folder-dot")).to_be_visible()

    page.keyboard.press("Control+K")
    field = page.get_by_role("combobox", name="Search chats")
    # A pointer that only rests where rows appear chooses none of them.
    hit = page.get_by_role("option").last.bounding_box()
    assert hit is not None
    page.mouse.move(hit["x"] + 20, hit["y"] + 10)
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    page.keyboard.press("Control+K")
    field.press_sequentially("madrid in:")
    # The completion, and not a chat that is in that folder.
    expect(page.get_by_role("option").first.locator("code")).to_contain_text("Far away")
    page.keyboard.press("Enter")
    expect(field).to_have_value('madrid in:"Far away" ')
    expect(page.get_by_role("option").first).to_contain_text("Madrid")
    field.press_sequentially("iss:archived")
    expect(page.get_by_role("alert")).to_contain_text("Did you mean “is”?")
    page.keyboard.press("Escape")

    row.hover()
    row.get_by_role("button").click()
    page.get_by_role("button", name="Select", exact=True).click()
    bar = page.get_by_role("toolbar", name="Selected chats")
    expect(bar).to_contain_text("1 selected")
    bar.get_by_role("button", name="Archive").click()
    expect(page.locator("#sidebar li.chat-row", has_text="Madrid")).to_have_count(0)
    page.get_by_role("button", name="Undo").last.click()
    expect(page.locator("#sidebar li.chat-row", has_text="Madrid").first).to_be_visible()
