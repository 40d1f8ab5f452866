"""What an end user does with a conversation as a tree: other wordings, other answers, waiting messages, lost calls."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import expect_no_faults
from tests.e2e.conftest import NewContext, RunningTrellis, screenshot
from tests.e2e.people import MEMBER, approval_card, enter, expect_idle, open_chat, open_search, say
from tests.e2e.screens import Screen

# As a process leaves a call that dies after the bytes have gone; the page hears of it as of anything it missed.
LOSE_THE_CALL = """
from datetime import timedelta
from django.db.models import F
from chat.models import Conversation, ToolCall, Turn
from workspaces.database import database_now
call = ToolCall.objects.across_workspaces().filter(status="waiting_for_approval").order_by("-pk").first()
ToolCall.objects.across_workspaces().filter(pk=call.pk).update(
    status="outcome_unknown", started_at=database_now(), error="The connection was lost.",
    resolution_due_at=database_now() + timedelta(days=1))
Turn.objects.across_workspaces().filter(pk=call.turn_id).update(status="waiting_for_input")
Conversation.objects.across_workspaces().filter(turns=call.turn_id).update(event_seq=F("event_seq") + 1)
"""


def test_questions_and_answers_branch_and_stay_browsable(page: Page) -> None:
    """Edit, answer again, go back, fork: nothing is lost, and each path goes on by itself."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    question, answer = page.locator(".user-message"), page.locator("article.answer")
    expect(answer).to_contain_text("In Tokyo it is now")  # before a turn has begun, all is idle too
    expect_idle(page)
    question.hover()
    question.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Your edited question").fill("What time is it in Paris?")
    page.keyboard.press("Control+Enter")
    expect(answer).to_contain_text("In Paris it is now")
    expect_idle(page)
    expect(question).to_contain_text("2/2")
    answer.hover()
    answer.get_by_role("button", name="Answer again").click()
    expect(answer).to_contain_text("2/2")
    expect_idle(page)
    screenshot(page, "branches")
    question.get_by_role("button", name="Earlier version").click()
    expect(answer).to_contain_text("In Tokyo it is now")
    page.reload()
    expect(answer).to_contain_text("In Tokyo it is now")
    first = page.url
    answer.hover()
    answer.get_by_role("button", name="Fork").click()
    expect(page.get_by_text("This is a copy")).to_be_visible()
    assert page.url != first
    say(page, "What time is it in Lima?")
    expect(answer.last).to_contain_text("In Lima it is now")
    page.goto(first)
    expect(answer).to_have_count(1)
    # A search finds what stands on another branch, and shows that.
    open_search(page).fill("Paris")
    expect(page.get_by_role("option").first).to_contain_text("Paris")
    page.keyboard.press("Enter")
    expect(answer).to_contain_text("In Paris it is now")
    expect(page.get_by_text("This message is not in the chat any more.")).to_have_count(0)


def test_what_is_said_meanwhile_waits_and_can_be_taken_back(page: Page) -> None:
    """While a call waits: queue two, change one, remove one; interrupting sends at once."""
    enter(page, MEMBER)
    open_chat(page, "Notes", 'Delete the note "shopping"')
    expect(approval_card(page)).to_be_visible()
    waiting = page.get_by_role("region", name="Waiting messages")
    say(page, "Which notes do I have?")
    say(page, "never mind this one")
    expect(waiting.get_by_role("listitem")).to_have_count(2)
    last = waiting.get_by_role("listitem").last
    last.get_by_role("button", name="Remove the waiting message").click()
    expect(waiting.get_by_role("listitem")).to_have_count(1)
    waiting.get_by_role("button", name="Edit the waiting message").click()
    waiting.get_by_role("textbox").fill("Which notes do I have now?")
    waiting.get_by_role("button", name="Save").click()
    screenshot(page, "queue")
    page.reload()
    expect(waiting).to_contain_text("Which notes do I have now?")
    waiting.get_by_role("button", name="Send now").click()
    expect(page.locator(".user-message").last).to_contain_text("Which notes do I have now?")
    expect(waiting).to_have_count(0)
    expect_idle(page)
    expect(page.locator("article.answer").last).to_contain_text("shopping")


def test_a_call_of_unknown_outcome_is_the_persons_to_judge(
    new_context: NewContext, trellis: RunningTrellis
) -> None:
    """REL-05: the card says what is known, offers check, mark, run again and give up, and the turn goes on."""
    page = new_context().new_page()
    enter(page, MEMBER)
    open_chat(page, "Notes", 'Delete the note "shopping"')
    expect(approval_card(page)).to_contain_text("delete_note")
    trellis.shell(LOSE_THE_CALL)
    card = page.get_by_role("group", name=re.compile("Did .* take effect"))
    expect(card).to_contain_text("was not repeated")
    screenshot(page, "unknown")
    card.get_by_role("button", name="Run it again").click()
    expect(approval_card(page)).to_contain_text("delete_note")
    approval_card(page).get_by_role("button", name="Refuse").click()
    approval_card(page).locator("form button[type=submit]").click()
    expect_idle(page)
    expect(page.locator("article.answer").last).to_contain_text("I did not run")


# A conversation that nobody could have typed within a test.
MESSAGES = 10_000
FILL_THE_CONVERSATION = f"""
from uuid_utils.compat import uuid7
from chat.models import Conversation, Message
talk = Conversation.objects.across_workspaces().order_by("-pk").first()
ids = [talk.leaf_id, *(uuid7() for _ in range({MESSAGES}))]
Message.objects.bulk_create(
    (Message(pk=pk, workspace_id=talk.workspace_id, conversation=talk, parent_id=ids[at], order_key=1_000 + at,
             role=("user", "assistant")[at & 1], status="complete", text="Message number " + str(at) + ".")
     for at, pk in enumerate(ids[1:])), batch_size=1_000)
Conversation.objects.across_workspaces().filter(pk=talk.pk).update(leaf=ids[-1])
print(ids[1 + 777], ids[1 + 40])
"""


def scroll(page: Page, top: int) -> None:
    page.locator(".chat-scroll").evaluate("(box, top) => { box.scrollTop = top }", top)


def test_a_long_conversation_can_be_read_back_to_its_beginning(
    page: Page, trellis: RunningTrellis
) -> None:
    """REL-330, REL-655, REL-1827: of 10,000 messages all can be reached, under the chat's header, and the reader stays where they read."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer")).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    filled = trellis.shell(FILL_THE_CONVERSATION)
    linked, early = filled.split()[-2:]
    page.reload()
    expect(page.get_by_text(f"Message number {MESSAGES - 1}.")).to_be_visible()
    # It opens with its end, whatever is above.
    messages = page.locator(".message-group > article")
    assert messages.count() < 200
    mark = page.get_by_text(f"Message number {MESSAGES - 37}.")
    mark.scroll_into_view_if_needed()
    before = mark.bounding_box()
    assert before is not None
    expect(page.get_by_text(f"Message number {MESSAGES - 60}.")).to_have_count(1)
    assert mark.bounding_box() == pytest.approx(before, abs=1)  # pages scroll by whole pixels
    for _ in range(5):
        count = messages.count()
        scroll(page, 0)
        expect(messages).not_to_have_count(count)
    # A link leads to an old message, whatever is between, and one reads on from there in both directions.
    talk = page.url
    page.goto("/w/demo/")
    page.goto(f"{talk}#message-{linked}")
    expect(page.get_by_text("Message number 777.")).to_be_in_viewport()
    expect(page.locator(".chat-header")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text("Message number 760.")).to_have_count(1)  # what is above has come
    assert messages.count() < 400
    scroll(page, 1_000_000)
    expect(page.get_by_text("Message number 900.")).to_have_count(1)
    page.get_by_role("button", name="Jump to latest").click()
    expect(page.get_by_text(f"Message number {MESSAGES - 1}.")).to_be_in_viewport()
    page.goto(f"{talk}#message-{early}")
    expect(page.get_by_text("Message number 40.")).to_be_in_viewport()
    expect(page.locator(".older", has_text="earlier")).to_have_count(0)
    scroll(page, 0)
    expect(page.locator(".user-message").first).to_be_in_viewport()
    expect(page.locator(".user-message").first).to_contain_text("What time is it in Tokyo?")
    # Whoever writes goes on at the end.
    say(page, "What time is it in Berlin?")
    expect(page.locator("article.answer").last).to_contain_text("In Berlin it is now")
    expect(page.locator("article.answer").last).to_be_in_viewport()
    expect_idle(page)
    # From anywhere a search finds what was said, and goes there.
    page.goto("/w/demo/")
    open_search(page).fill('"message number 7777"')
    hit = page.get_by_role("option", name="Message number 7777.").first
    expect(hit.locator("mark")).to_have_text("Message number 7777")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Message number 7777.")).to_be_in_viewport()


# No model of the demo summarises, so the row gets what the task would have written.
SUMMARISE = """
from chat.models import Conversation, Message
from chat.live.recording import changing
from chat.summaries import Summary, keep_summary
talk = Conversation.objects.across_workspaces().order_by("-pk").first()
rows = Message.objects.for_workspace(talk.workspace_id).filter(conversation=talk)
asked = rows.filter(role="user").order_by("-order_key")[0]
last = rows.get(pk=asked.parent_id)
with changing(talk.pk, talk.workspace_id) as changes:
    keep_summary(last, Summary(text="They asked for the **time** in Tokyo.", questions=1))
    changes.message(last)
"""


def test_a_summary_stands_where_it_was_made(
    page: Page, trellis: RunningTrellis, screen: Screen
) -> None:
    """REL-581: read, changed and taken back at its place, by keyboard, and axe finds nothing."""
    enter(page, MEMBER)
    open_chat(page, "Clock", "What time is it in Tokyo?")
    expect(page.locator("article.answer").last).to_contain_text("In Tokyo it is now")
    expect_idle(page)
    say(page, "What time is it in Berlin?")
    expect(page.locator("article.answer").last).to_contain_text("In Berlin it is now")
    expect_idle(page)
    trellis.shell(SUMMARISE)
    page.reload()
    card = page.get_by_role("region", name="Older messages were summarised")
    expect(card).to_contain_text("in place of 1 question and its answer")
    # Between what it stands for and the next question.
    expect(page.locator(".summary-card + article")).to_contain_text("Berlin")
    card.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(card.locator(".md strong")).to_have_text("time")
    expect_no_faults(page)
    screenshot(page, f"summary-{screen.name}")
    card.get_by_role("button", name="Edit summary").click()
    field = card.get_by_role("textbox")
    expect(field).to_be_focused()
    field.fill("They live in Tokyo.")
    page.keyboard.press("Control+Enter")
    expect(card.locator(".md")).to_have_text("They live in Tokyo.")
    expect(card).to_contain_text("You edited it.")
    expect(card.get_by_role("button", name="Edit summary")).to_be_focused()
    card.get_by_role("button", name="Don't use it").click()
    expect(card).to_contain_text("Not used.")
    page.reload()
    expect(card).to_contain_text("Not used.")
    card.locator("summary").click()
    card.get_by_role("button", name="Use it again").click()
    expect(card).to_contain_text("in place of 1 question")
