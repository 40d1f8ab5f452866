"""Which servers and tools a chat uses."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import screenshot
from tests.e2e.people import expect_idle, open_chat, say, send


def test_a_chat_says_which_tools_the_model_calls(member: Page) -> None:
    """REL-660, REL-750: before the first message, also after a reload, and later; from a list of what can be called."""
    question = "What time is it in Tokyo?"

    def choose(name: str) -> None:
        member.get_by_role("button", name="Add to this message").click()
        member.get_by_role("button", name="Servers and tools…").click()
        dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
        choice = dialog.get_by_label("Which tools the model calls")
        expect(choice.locator("option", has_text="First time.get_current_time")).to_have_count(1)
        choice.select_option(label=name)
        expect(choice.locator("option:checked")).to_have_text(name)
        expect(dialog.locator("[aria-busy=true]")).to_have_count(0)
        expect_no_faults(member)
        member.keyboard.press("Escape")
        expect(dialog).to_have_count(0)

    member.goto("/w/demo/")
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    choose("None")
    # On a touch screen the browser goes back from the dialog, and forgets a reload that is asked for on the way.
    member.wait_for_function("() => !history.state?.layer")
    member.reload()
    expect(member.get_by_role("textbox", name="Message Clock")).to_be_visible()
    say(member, question)
    member.wait_for_url("**/c/**")
    expect(member.locator("article.answer").last).to_be_visible()
    expect_idle(member)
    expect(member.locator("article.tool-card")).to_have_count(0)
    choose("As the bud is set")
    say(member, question)
    expect(member.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(member)
    expect(member.locator("article.tool-card")).to_have_count(1)


def test_tools_that_are_switched_quickly_all_stay_so(member: Page) -> None:
    """REL-1249: the second one before the first has been kept."""
    member.goto("/w/demo/")
    open_chat(member, "Notes", "Which notes do I have?")
    expect_idle(member)
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
    dialog.get_by_role("button", name="Tools of notes").click()
    boxes = dialog.locator(".check input[type=checkbox]")
    boxes.evaluate_all("boxes => boxes.slice(0, 2).forEach((box) => box.click())")
    expect(dialog).to_contain_text("4 of 6 tools")
    for at, is_on in enumerate((False, False, True)):
        expect(boxes.nth(at)).to_be_checked(checked=is_on)


def test_tools_that_two_tabs_switch_both_stay_so(member: Page) -> None:
    """REL-1345: each tab changes what it touches; the other shows it while its dialog is open."""
    member.goto("/w/demo/")
    open_chat(member, "Notes", "Which notes do I have?")
    expect_idle(member)
    other = member.context.new_page()
    other.goto(member.url)

    def boxes(page: Page) -> Locator:
        page.get_by_role("button", name="Add to this message").click()
        page.get_by_role("button", name="Servers and tools…").click()
        dialog = page.get_by_role("dialog", name="Servers and tools of this chat")
        dialog.get_by_role("button", name="Tools of notes").click()
        return dialog.locator(".check input[type=checkbox]")

    here, there = boxes(member), boxes(other)
    expect(there.first).to_be_checked()
    here.nth(0).click()
    expect(there.nth(0)).not_to_be_checked()
    there.nth(1).click()
    expect(there.nth(1)).not_to_be_checked()
    for page in (here, there):
        for at, is_on in enumerate((False, False, True)):
            expect(page.nth(at)).to_be_checked(checked=is_on)
    # What cannot be kept goes back, and is told.
    member.context.set_offline(True)
    here.nth(2).click()
    expect(member.locator(".toast-box").last).to_contain_text("connection")
    expect(here.nth(2)).to_be_checked()
    member.context.set_offline(False)
    other.close()


def test_the_next_chat_uses_prompts_and_tools_of_a_server_that_was_just_added(
    member: Page,
) -> None:
    """REL-1220: its tools are shown and switched before the first message, and its prompts are found with a slash."""
    member.goto("/w/demo/")
    member.locator(".bud-card").get_by_role("button", name="Clock").first.click()
    composer = member.get_by_role("textbox", name="Message Clock")
    composer.fill("/tid")
    menu = member.get_by_role("listbox", name="Commands and prompts")
    expect(menu).to_contain_text("No command or prompt matches.")
    composer.fill("")
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    dialog = member.get_by_role("dialog", name="Servers and tools of this chat")
    dialog.get_by_role("button", name="notes", exact=True).click()
    dialog.get_by_role("button", name="Tools of notes").click()
    expect(dialog).to_contain_text("Added to this chat")
    writes = dialog.get_by_role("checkbox", name=re.compile("write", re.IGNORECASE)).first
    expect(writes).to_be_checked()
    writes.click()
    expect(writes).not_to_be_checked()
    screenshot(member, "tools-before-the-first-message")
    expect_no_faults(member)
    member.keyboard.press("Escape")
    composer.fill("/tid")
    expect(menu.get_by_role("option")).to_contain_text("Tidy up a note")
    composer.press("Enter")
    prompt = member.get_by_role("dialog", name="Tidy up a note")
    expect(prompt.locator("datalist option[value=ideas]")).to_have_count(1)
    prompt.get_by_label(re.compile("^name")).fill("ideas")
    member.keyboard.press("Enter")
    expect(composer).to_have_value(re.compile('Read the note "ideas" and say it again, brief'))
    send(member)
    member.wait_for_url("**/c/**")
    expect_idle(member)
    member.get_by_role("button", name="Add to this message").click()
    member.get_by_role("button", name="Servers and tools…").click()
    expect(dialog.get_by_role("switch", name="Use notes in this chat")).to_be_checked()
