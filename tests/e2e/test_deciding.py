"""What tools ask of people: approvals, questions, and what is allowed once and for all."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.e2e.conftest import NewContext, screenshot
from tests.e2e.people import (
    MEMBER,
    approval_card,
    enter,
    expect_idle,
    leave_sidebar,
    open_account,
    open_chat,
    open_sidebar,
    say,
    tool_card,
)


def test_a_destructive_call_waits_and_a_refusal_is_told(member: Page) -> None:
    """Journey 1: nothing runs before approval; the reason reaches the model. REL-2448: its Stop is seen in any colours.

    REL-2449: its card does not speak of the person as of somebody else.
    """
    # A note of its own: other journeys delete those that the demo begins with.
    open_chat(member, "Notes", 'Write a note "dairy" with the text "milk"')
    approval_card(member).get_by_role("button", name="Allow once").click()
    expect_idle(member)
    say(member, 'Delete the note "dairy"')
    card = approval_card(member)
    expect(card).to_contain_text("delete_note")
    expect(card).to_contain_text("dairy")
    expect(card).to_contain_text("Destructive")
    screenshot(member, "approval")
    member.emulate_media(forced_colors="active")
    sign, ground = member.locator(".stop-square").evaluate(
        "one => [one, one.parentElement].map(box => getComputedStyle(box).backgroundColor)"
    )
    assert sign != ground
    member.emulate_media(forced_colors="none")
    card.get_by_role("button", name="Refuse").click()
    card.get_by_role("textbox").fill("I still need milk")
    card.locator("form button[type=submit]").click()
    expect_idle(member)
    expect(tool_card(member)).to_contain_text("Refused: I still need milk")
    expect(tool_card(member)).not_to_contain_text("The user refused")
    answer = member.locator("article.answer").last
    expect(answer).to_contain_text("I did not run")
    expect(answer).to_contain_text("I still need milk")
    say(member, "Which notes do I have?")
    expect(tool_card(member)).to_contain_text("succeeded")
    expect_idle(member)
    expect(member.locator("article.answer").last).to_contain_text("dairy")


def test_an_approval_survives_reload_and_shows_in_every_tab(new_context: NewContext) -> None:
    """REL-10: two tabs show the same; after a reload the card is there, and one decision serves both."""
    context = new_context()
    first = context.new_page()
    enter(first, MEMBER)
    open_chat(first, "Notes", 'Write a note "milk" with the text "buy two"')
    # Writing is safe to repeat but not read-only: it asks.
    expect(approval_card(first)).to_be_visible()
    second = context.new_page()
    second.goto(first.url)
    expect(approval_card(second)).to_contain_text("milk")
    first.reload()
    expect(approval_card(first)).to_contain_text("milk")
    third = context.new_page()
    third.goto("/w/demo/")
    third.get_by_role("button", name=re.compile("^Waiting for you: ")).click()
    expect(third).to_have_title(re.compile(r"^\(\d+\) Demo workspace"))
    dialog = third.get_by_role("dialog", name="Waiting for you")
    here = dialog.get_by_role("group", name=re.compile("milk"))
    here.get_by_role("button", name="Allow once").click()
    expect(here).to_have_count(0)
    for page in (first, second):
        expect(tool_card(page)).to_contain_text("succeeded")
        expect_idle(page)
    texts = [page.locator("article.answer").last.inner_text() for page in (first, second)]
    assert texts[0] == texts[1]


def test_edited_arguments_are_what_runs(member: Page) -> None:
    """Journey 1: arguments are readable and editable."""
    open_chat(member, "Notes", 'Delete the note "ideas"')
    card = approval_card(member)
    card.get_by_role("button", name="Edit").click()
    editor = card.locator("input[type=text], textarea").first
    value = editor.input_value()
    if value.strip().startswith("{"):
        editor.fill(json.dumps({"name": "no such note"}))
    else:
        editor.fill("no such note")
    card.get_by_role("button", name=re.compile("Allow")).click()
    expect_idle(member)
    card = tool_card(member)
    card.get_by_role("button").first.click()
    card.get_by_role("button", name="Arguments").click()
    expect(card).to_contain_text("no such note")


def test_a_servers_question_is_answered_after_a_reload(member: Page) -> None:
    """SEC-69: the form names its server, survives the reload, says what is missing, and its answer stays."""
    open_chat(member, "Notes", "Plan a garden day")
    card = approval_card(member)
    expect(card).to_contain_text("notes has a question for you")
    expect(card).to_contain_text("plan_garden_day")
    expect(card).to_contain_text("left")
    expect(open_sidebar(member).get_by_text("needs you").first).to_be_visible()
    leave_sidebar(member)
    screenshot(member, "question")
    member.reload()
    card = approval_card(member)
    card.get_by_role("button", name="Submit").click()
    expect(card).to_contain_text("This field is required.")
    card.locator("input[type=date]").fill("2026-12-24")
    card.get_by_label("What is to be done").select_option("harvest")
    card.get_by_role("button", name="Submit").click()
    expect_idle(member)
    expect(member.locator("article.answer").last).to_contain_text(
        "On 2026-12-24: harvest, 2 people"
    )
    member.reload()
    expect(tool_card(member)).to_contain_text("You answered")
    expect(tool_card(member)).to_contain_text("2026-12-24")


def test_a_servers_question_can_be_declined(member: Page) -> None:
    """SEC-69: saying no is as easy as saying yes, and the answer goes on."""
    open_chat(member, "Notes", "Plan a garden day")
    approval_card(member).get_by_role("button", name="Decline").click()
    expect_idle(member)
    expect(member.locator("article.answer").last).to_contain_text("was not answered")
    expect(tool_card(member)).to_contain_text("You declined")


def test_always_asks_no_more_until_it_is_taken_back(member: Page) -> None:
    """SEC-62: given on the card, listed under the account, and revoked there."""
    open_chat(member, "Notes", 'Write a note "tea" with the text "green"')
    card = approval_card(member)
    card.get_by_role("button", name="Always").click()
    member.get_by_role("button", name="Always for this tool").click()
    expect_idle(member)
    say(member, 'Write a note "tea" with the text "black"')
    cards = member.locator("article.tool-card")
    expect(cards).to_have_count(2)
    expect(cards.last).to_contain_text("succeeded")
    expect(member.locator(".approval")).to_have_count(0)
    expect_idle(member)
    open_account(member)
    chat = member.url
    member.get_by_role("link", name="Tool permissions").click()
    table = member.get_by_role("region", name="Table of tool permissions")
    expect(table).to_contain_text("all your chats")
    table.get_by_role("button", name=re.compile("Revoke")).first.click()
    expect(member.locator("main")).to_contain_text("None yet")
    member.goto(chat)
    expect_idle(member)
    say(member, 'Write a note "tea" with the text "white"')
    expect(approval_card(member)).to_contain_text("write_note")
    approval_card(member).get_by_role("button", name="Refuse").click()
    approval_card(member).locator("form button[type=submit]").click()
    expect_idle(member)


def test_a_card_has_its_tool_ask_each_time(member: Page) -> None:
    """SEC-554: chosen on the card, which waits on; listed and revoked under the account."""
    open_chat(member, "Notes", 'Write a note "tea" with the text "green"')
    card = approval_card(member)
    card.get_by_role("button", name="Always").click()
    screenshot(member, "always-menu")
    member.get_by_role("button", name="Ask me each time").click()
    expect(card.get_by_role("status")).to_contain_text("asks you each time")
    screenshot(member, "asks-each-time")
    card.get_by_role("button", name="Allow once").click()
    expect_idle(member)
    open_account(member)
    member.get_by_role("link", name="Tool permissions").click()
    table = member.get_by_role("region", name="Table of tool permissions")
    expect(table).to_contain_text("asks each time")
    table.get_by_role("button", name=re.compile("Revoke")).first.click()
    expect(member.locator("main")).to_contain_text("None yet")
