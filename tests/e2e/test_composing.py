"""Writing a message: prompts, mentions, quotes, drafts, and who answers."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    MEMBER,
    attach,
    enter,
    expect_idle,
    leave_sidebar,
    open_chat,
    open_sidebar,
    say,
    send,
    takes_from_input_method,
    tool_card,
)
from tests.e2e.screens import Screen


def test_another_bud_and_a_file_are_named_while_typing(member: Page) -> None:
    """REL-650, REL-1357, REL-2281: by keyboard: `@` asks another bud this once, `#` takes a resource along; both are seen and taken back."""
    open_chat(member, "Notes", 'Read the note "ideas"')
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer = member.get_by_role("textbox", name="Message").first
    composer.press_sequentially("@cl")
    menu = member.get_by_role("listbox", name="Ask another bud this once")
    expect(menu.get_by_role("option")).to_contain_text("Clock")
    assert not takes_from_input_method(composer, "Enter")
    composer.press("Enter")
    expect(menu).to_have_count(0)
    expect(composer).to_have_value("")
    chips = member.get_by_role("list", name="With this message")
    expect(chips).to_contain_text("Asks Clock this once")
    composer.press("Backspace")
    expect(chips).to_have_count(0)
    composer.press_sequentially("@cl")
    composer.press("Tab")
    expect_no_faults(member)
    screenshot(member, "mention")
    # Whom it asks is there after a reload, as what is written is.
    member.reload()
    expect(chips).to_contain_text("Asks Clock this once")
    say(member, "What time is it in Tokyo?")
    answer = member.locator("article.answer").last
    expect(answer.get_by_role("heading", name="Clock said")).to_have_count(1)
    expect_idle(member)
    expect(answer.locator(".answer-who")).to_have_text("Clock")
    expect(answer).to_contain_text("Tokyo")
    expect(chips).to_have_count(0)
    composer.press_sequentially("Sum up #all")
    offered = member.get_by_role("listbox", name="Files and resources")
    offered.get_by_role("option", name=re.compile("All notes")).click()
    expect(composer).to_have_value("Sum up ")
    expect(member.get_by_role("list", name="Attachments")).to_contain_text("All notes")
    send(member)
    expect_idle(member)
    last = member.locator("article.answer").last
    expect(last.get_by_role("heading", name="Notes said")).to_have_count(1)
    expect(last).to_contain_text("this is what came with")


def test_who_answers_is_chosen_in_the_head_of_the_chat(
    new_context: NewContext, screen: Screen
) -> None:
    """REL-1221: by keyboard, before the first message and later; in both themes, on a phone too."""
    page = new_context(bypass_csp=True).new_page()
    enter(page, MEMBER)
    page.goto("/w/demo/")
    page.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    head = page.locator(".chat-header")
    head.get_by_role("button", name=re.compile("^Bud and model: Clock")).focus()
    page.keyboard.press("Enter")
    choosing = page.get_by_role("dialog", name="Bud and model")
    choosing.get_by_role("combobox").fill("Writ")
    page.keyboard.press("Enter")
    expect(head.get_by_role("button", name=re.compile("^Bud and model: Writer"))).to_be_visible()
    say(page, "What can you do?")
    page.wait_for_url("**/c/**")
    expect_idle(page)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect_no_faults(page)
        screenshot(page, f"head-{screen.width}-{theme}")
    head.get_by_role("button", name=re.compile("^Bud and model: Writer")).click()
    choosing.get_by_role("option", name=re.compile("Clock")).click()
    expect(head.get_by_role("button", name=re.compile("^Bud and model: Clock"))).to_be_visible()


def test_a_passage_of_an_answer_is_quoted(page: Page, screen: Screen) -> None:
    """REL-661: what is selected goes into the next message, below what is written there, and is seen as a quote."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    sentence = page.locator("article.answer p", has_text="In Tokyo it is now").last
    expect(sentence).to_be_visible()
    expect_idle(page)
    composer = page.get_by_role("textbox", name="Message").first
    composer.fill("Look at this.")
    button = page.get_by_role("button", name="Quote")
    expect(button).to_have_count(0)
    sentence.click(click_count=3)
    expect(button).to_be_in_viewport(ratio=1)
    expect_no_faults(page)
    screenshot(page, f"quote-{screen.name}")
    button.click()
    expect(button).to_have_count(0)
    expect(composer).to_be_focused()
    expect(composer).to_have_value(re.compile(r"^Look at this\.\n\n> In Tokyo it is now .*\n\n$"))
    composer.press_sequentially("Is that right?")
    send(page)
    sent = page.locator(".user-message").last
    expect(sent.locator("blockquote")).to_contain_text("In Tokyo it is now")
    expect(sent.locator(".bubble > p")).to_have_text(["Look at this.", "Is that right?"])
    expect_idle(page)
    expect_no_faults(page)


def test_a_prompt_is_used_by_keyboard(member: Page) -> None:
    """Ours: a slash, a choice, an argument with suggestions; the text waits for a look before it is sent."""
    open_chat(member, "Notes", 'Read the note "ideas"')
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer = member.get_by_role("textbox", name="Message").first
    composer.fill("/tid")
    expect(member.get_by_role("listbox", name="Commands and prompts")).to_contain_text(
        "Tidy up a note"
    )
    composer.press("Enter")
    dialog = member.get_by_role("dialog", name="Tidy up a note")
    dialog.get_by_role("button", name="Insert into message").click()
    expect(dialog).to_contain_text("This field is required.")
    expect(dialog.locator("datalist option[value=ideas]")).to_have_count(1)
    dialog.get_by_label(re.compile("^name")).fill("ideas")
    member.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(composer).to_have_value(re.compile('Read the note "ideas" and say it again, brief'))
    send(member)
    expect_idle(member)
    expect(tool_card(member)).to_contain_text("succeeded")
    # By keyboard as well: another bud goes on in the same conversation.
    expect(member.locator("article.tool-card")).to_have_count(2)
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    composer.fill("/bu")
    composer.press("Enter")
    choosing = member.get_by_role("dialog", name="Bud and model")
    choosing.get_by_role("button", name="Pin Writer").press("Enter")
    expect(choosing.get_by_role("button", name="Unpin Writer")).to_be_visible()
    expect(choosing.get_by_role("option").first).to_contain_text("Writer")
    member.get_by_role("combobox", name="Search buds and models").fill("clock")
    member.keyboard.press("Enter")
    head = member.locator(".chat-header")
    expect(head.get_by_role("button", name="Bud and model: Clock")).to_be_visible()
    composer.fill("Put the time into my notes")
    expect(member.get_by_role("status").filter(has_text="notes is not used")).to_be_visible()
    member.get_by_role("button", name="Add it").click()
    say(member, "What time is it in Tokyo?")
    expect(tool_card(member)).to_contain_text("time")
    expect_idle(member)
    member.reload()  # as on another device: what is pinned is the server's to know
    member.keyboard.press("Control+Shift+M")
    expect(choosing.get_by_role("button", name="Unpin Writer")).to_be_visible()
    expect(choosing.get_by_role("option").first).to_contain_text("Writer")
    choosing.get_by_role("button", name="Unpin Writer").press("Enter")
    expect(choosing.get_by_role("button", name="Pin Writer", exact=True)).to_be_visible()


def test_a_draft_moves_between_open_browsers(
    member: Page, new_context: NewContext, tmp_path: Path
) -> None:
    """REL-754, REL-1159, REL-1224: what is written in one is shown in the other at once, and goes from both when one sends it."""
    open_chat(member, "Clock", "What time is it in Vienna?")
    expect_idle(member)
    other = new_context(storage_state=member.context.storage_state()).new_page()
    other.goto(member.url)
    here, there = (one.get_by_role("textbox", name="Message").first for one in (member, other))
    expect(there).to_be_enabled()
    here.fill("What time is it in")
    expect(there).to_have_value("What time is it in")
    # The open chat shows it itself; in the list of another page it is marked.
    third = new_context(storage_state=member.context.storage_state()).new_page()
    third.goto("/w/demo/")
    link = f".chat-row-link[href='{urlsplit(member.url).path}']"
    row = open_sidebar(third).locator(link)
    mark = row.get_by_role("img", name="not sent yet")
    expect(mark).to_be_visible()
    screenshot(third, "draft-in-the-list")
    expect(open_sidebar(other).locator(link)).to_be_visible()
    expect(other.locator(link).get_by_role("img", name="not sent yet")).to_have_count(0)
    leave_sidebar(other)
    there.fill("What time is it in Graz?")
    expect(here).to_have_value("What time is it in Graz?")
    # A file that one of them takes along is there too, and after a reload.
    attach(member, tmp_path, ("note.txt", b"The word is plum"))
    for page in (member, other):
        expect(page.get_by_role("list", name="Attachments")).to_contain_text("note.txt")
    other.reload()
    expect(other.get_by_role("list", name="Attachments")).to_contain_text("note.txt")
    expect(there).to_have_value("What time is it in Graz?")
    send(other)
    expect(row).to_be_visible()
    expect(mark).to_have_count(0)
    expect(here).to_have_value("")
    expect(member.locator(".composer").get_by_role("list", name="Attachments")).to_have_count(0)
    expect(member.locator(".user-message").last).to_contain_text("note.txt")


def test_of_a_long_message_the_beginning_is_shown(member: Page) -> None:
    """REL-1668: the answer is in sight, and one press shows the rest."""
    lines = "\n".join(f"Line {number} of what was pasted" for number in range(200))
    open_chat(member, "Clock", f"What is this?\n{lines}")
    expect_idle(member)
    more = member.get_by_role("button", name="Show all of it")
    expect(more).to_be_visible()
    bubble = member.locator("article.user-message .bubble")
    expect(member.locator(".bubble[data-pending]")).to_have_count(0)
    assert bubble.evaluate("node => node.clientHeight") < 300
    expect(member.locator("article.answer").last).to_be_in_viewport()
    expect_no_faults(member, "a folded message")
    screenshot(member, "long-message")
    more.click()
    expect(bubble).not_to_have_attribute("data-folded", "true")
    assert bubble.evaluate("node => node.clientHeight") > 3000
    less = member.get_by_role("button", name="Show less")
    less.click()
    expect(member.get_by_role("button", name="Show all of it")).to_be_in_viewport()
