"""An end user's path: ask, watch, reload, stop, find."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import RunningTrellis, forget_chats, screenshot
from tests.e2e.people import (
    expect_idle,
    open_chat,
    open_sidebar,
    tool_card,
)


def test_a_question_is_answered_with_a_real_tool(member: Page) -> None:
    """Journey 1: the card shows name, arguments, result and duration; the answer streams. REL-2466: its actions show."""
    open_chat(member, "Clock", "What time is it in Tokyo?")
    card = tool_card(member)
    expect(card).to_contain_text("time")
    expect(card).to_contain_text("get_current_time")
    expect(card).to_contain_text("succeeded")
    expect(card).to_contain_text(re.compile(r"\d+ ms|\d+(\.\d+)? s"))
    expect(member.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    member.mouse.move(0, 0)
    expect(member.locator("article.answer .message-actions")).to_have_css("opacity", "1")
    card.get_by_role("button").first.click()
    card.get_by_role("button", name="Arguments").click()
    expect(card).to_contain_text("Asia/Tokyo")
    card.get_by_role("button", name="Result").click()
    expect(card).to_contain_text("datetime")
    expect(member.get_by_text(re.compile("not an AI")).filter(visible=True).first).to_be_visible()
    expect(member).to_have_title(re.compile("What time is it in Tokyo"))
    screenshot(member, "chat")


def test_a_reload_in_mid_stream_goes_on(member: Page) -> None:
    """REL-22: the slow tool runs on while the page is away; the page comes back to it."""
    open_chat(member, "Notes", "Make a slow report")
    expect(tool_card(member)).to_contain_text("running")
    expect(member.locator("progress")).to_be_visible()
    member.reload()
    expect(tool_card(member)).to_contain_text("running")
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    expect(member.locator("article.answer").last).to_contain_text("slow_report")


def test_stop_ends_the_running_call(member: Page) -> None:
    """Journey 1: Stop stops the model and the call; Retry is offered."""
    open_chat(member, "Notes", "Make a slow report")
    expect(tool_card(member)).to_contain_text("running")
    member.get_by_role("button", name="Stop").click()
    expect(tool_card(member)).to_contain_text("cancelled")
    expect_idle(member)
    expect(member.get_by_role("button", name="Retry")).to_be_visible()


def test_the_terminal_asks_while_the_server_runs(trellis: RunningTrellis) -> None:
    """Ours: one turn through the same engine; every event a JSON line; exit codes that scripts can use."""
    done = trellis.manage(
        "ask", "--workspace", "demo", "--bud", "clock", "What time is it in Oslo?"
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [e["tool_call"] for e in events if e["type"] == "tool_call.changed"]
    assert calls[-1]["status"] == "succeeded"
    assert "Oslo" in events[-1]["answer"]
    denied = trellis.manage(
        "ask", "--workspace", "demo", "--bud", "notes", "--deny", 'Delete the note "x"'
    )
    assert denied.returncode == 0
    wrong = trellis.manage("ask", "--workspace", "demo", "--bud", "nobody", "hello")
    assert wrong.returncode == 2
    assert "nobody" in wrong.stderr


def test_conversations_are_found_renamed_and_deleted(member: Page, trellis: RunningTrellis) -> None:
    """REL-375, REL-718: the sidebar keeps what was said; deleting asks first, says until when, and can be taken back."""
    forget_chats(trellis, "Cairo")
    open_chat(member, "Clock", "What time is it in Cairo?")
    expect_idle(member)
    open_sidebar(member)
    entry = member.get_by_role("link", name=re.compile("Cairo")).first
    expect(entry).to_be_visible()
    member.reload()
    open_sidebar(member)
    expect(member.get_by_role("link", name=re.compile("Cairo")).first).to_be_visible()
    for takes_back in (True, False):
        open_sidebar(member)
        member.get_by_role("button", name=re.compile("^More for .*Cairo")).first.click()
        member.get_by_role("button", name="Delete", exact=True).click()
        asked = member.get_by_role("dialog")
        expect(asked).to_contain_text("It is erased for good after 30 days.")
        asked.get_by_role("button", name="Delete", exact=True).click()
        expect(asked).to_have_count(0)
        open_sidebar(member)
        expect(member.get_by_role("link", name=re.compile("Cairo"))).to_have_count(0)
        if takes_back:
            member.get_by_role("button", name="Undo").click()
            open_sidebar(member)
            expect(member.get_by_role("link", name=re.compile("Cairo")).first).to_be_visible()
    open_sidebar(member).get_by_role("button", name="Archive", exact=True).click()
    member.get_by_role("button", name="Recently deleted").click()
    member.get_by_role("button", name=re.compile("^Restore .*Cairo")).click()
    member.keyboard.press("Escape")
    member.get_by_role("button", name="Back to chats").click()
    expect(member.get_by_role("link", name=re.compile("Cairo")).first).to_be_visible()


def test_deleted_chats_are_erased_for_good_one_by_one_and_all(member: Page) -> None:
    """REL-1351: by keys too; no way back is offered to what has gone, and what goes elsewhere goes from the list."""
    for city in ("Lagos", "Accra", "Dakar", "Tunis"):
        open_chat(member, "Clock", f"What time is it in {city}?")
        expect_idle(member)
        member.locator(".chat-header").get_by_role("button", name="More for").click()
        member.get_by_role("button", name="Delete", exact=True).click()
        member.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        member.wait_for_url("**/w/demo/")
    open_sidebar(member).get_by_role("button", name="Archive", exact=True).click()
    member.get_by_role("button", name="Recently deleted").click()
    dialog = member.get_by_role("dialog", name="Recently deleted")
    expect(dialog.get_by_role("button", name="Undo")).not_to_have_count(0)
    row = dialog.locator(".deleted-row", has_text="Tunis")
    for name in ("Erase “", "Erase for good"):
        row.get_by_role("button", name=name).press("Enter")
    expect(row).to_have_count(0)
    # Nobody who works by keys is thrown out of the dialog.
    assert member.evaluate("document.activeElement.closest('dialog') !== null")
    row = dialog.locator(".deleted-row", has_text="Dakar")
    row.get_by_role("button", name="Erase “").click()
    member.route("**/erase/", lambda route: route.fulfill(status=404, json={}))
    row.get_by_role("button", name="Erase for good").click()
    expect(row).to_have_count(0)
    member.unroute("**/erase/")
    screenshot(member, "recently-deleted")
    expect_no_faults(member, "recently deleted")
    dialog.get_by_role("button", name="Erase all…").click()
    asked = member.get_by_role("dialog", name="Erase all deleted chats?")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    asked.get_by_role("button", name="Erase for good").click()
    expect(dialog).to_contain_text("You have deleted nothing lately.")
    expect(dialog.locator(".deleted-row")).to_have_count(0)
    expect(member.get_by_role("button", name="Undo")).to_have_count(0)
    member.reload()
    open_sidebar(member).get_by_role("button", name="Archive", exact=True).click()
    member.get_by_role("button", name="Recently deleted").click()
    expect(dialog).to_contain_text("You have deleted nothing lately.")
