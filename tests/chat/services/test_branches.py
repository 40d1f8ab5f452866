"""The tree of a conversation: edits, other answers, paths, forks."""

from __future__ import annotations

import json
import re
import threading

import pytest

from chat.message_paths import path_to
from chat.models import Message, ToolCall
from chat.services import branches
from chat.services.branches import edit_message, fork_conversation, regenerate, show_branch
from chat.services.exports import ExportFormat, export_conversation
from chat.services.turns import retry_turn, stop_turn
from tests.chat.conftest import Chat
from tests.chat.services.branching import ask, asked_of_the_model, message_of, texts_of
from workspaces.errors import Conflict, InvalidInput
from workspaces.words.formats import Formats, written_for


def test_an_edited_question_is_a_sibling_and_the_model_reads_its_path_alone(chat: Chat) -> None:
    """REL-01: and the same edit again stores nothing twice."""
    ask(chat, "one", "first")
    ask(chat, "two", "second")
    chat.model.say("instead")
    chat.watching.forget()
    for _ in range(2):
        sent = edit_message(
            message=message_of(chat, "two"), client_id="edit", text="deux", actor=chat.actor
        )
    chat.watching.turn("completed")
    assert texts_of(chat) == ["one", "first", "deux", "instead"]
    assert asked_of_the_model(chat) == ["one", "first", "deux"]
    assert sent.message.parent_id == message_of(chat, "two").parent_id
    assert len(chat.model.requests) == 3


def test_another_answer_is_a_sibling_of_the_first(chat: Chat) -> None:
    """And the first can be shown again; the next question goes on from what is shown."""
    turn = ask(chat, "one", "first")
    chat.model.say("again")
    chat.watching.forget()
    begun = {regenerate(turn=turn, client_id="more", actor=chat.actor).pk for _ in range(2)}
    chat.watching.turn("completed")
    assert len(begun) == 1
    assert texts_of(chat) == ["one", "again"]
    assert asked_of_the_model(chat) == ["one"]
    assert message_of(chat, "again").parent_id == message_of(chat, "first").parent_id
    show_branch(message=message_of(chat, "first"), actor=chat.actor)
    assert texts_of(chat) == ["one", "first"]
    ask(chat, "two", "second")
    assert texts_of(chat) == ["one", "first", "two", "second"]
    assert asked_of_the_model(chat) == ["one", "first", "two"]
    show_branch(message=message_of(chat, "again"), actor=chat.actor)
    assert texts_of(chat) == ["one", "again"]


def test_a_branch_is_shown_down_to_its_newest_end(chat: Chat) -> None:
    """Whoever goes back to a question sees what came of it."""
    ask(chat, "one", "first")
    ask(chat, "two", "second")
    chat.model.say("other")
    chat.watching.forget()
    edit_message(message=message_of(chat, "one"), client_id="e", text="uno", actor=chat.actor)
    chat.watching.turn("completed")
    assert texts_of(chat) == ["uno", "other"]
    show_branch(message=message_of(chat, "one"), actor=chat.actor)
    assert texts_of(chat) == ["one", "first", "two", "second"]


def test_nothing_branches_while_an_answer_is_being_written(chat: Chat) -> None:
    """REL-12: one running turn; a branch is told to wait."""
    first = ask(chat, "one", "first")
    hold = threading.Event()
    chat.model.say("slow answer", hold=hold)
    sent = chat.send("two")
    chat.watching.until(lambda event: event["type"] == "text.delta")
    for act in (
        lambda: edit_message(message=sent.message, client_id="e", text="x", actor=chat.actor),
        lambda: regenerate(turn=first, client_id="r", actor=chat.actor),
        lambda: show_branch(message=message_of(chat, "first"), actor=chat.actor),
    ):
        with pytest.raises(Conflict):
            act()
    hold.set()
    chat.watching.turn("completed")


def test_only_what_a_person_wrote_can_be_edited(chat: Chat) -> None:
    """SEC-61: an answer cannot be put into the model's mouth."""
    ask(chat, "one", "first")
    with pytest.raises(InvalidInput):
        edit_message(
            message=message_of(chat, "first"), client_id="e", text="forged", actor=chat.actor
        )


def test_a_turn_on_another_path_cannot_be_retried(chat: Chat) -> None:
    """What would come of it would not be seen."""
    chat.model.fail(400)
    failed = chat.ask("one")
    chat.model.say("fine")
    chat.watching.forget()
    edit_message(message=failed.user_message, client_id="e", text="uno", actor=chat.actor)
    chat.watching.turn("completed")
    with pytest.raises(Conflict):
        retry_turn(turn=failed, actor=chat.actor)


def test_a_fork_of_too_many_messages_says_where_to_fork(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2078: with the limit, as numbers are written."""
    monkeypatch.setattr(branches, "LONGEST_FORK", 1)
    ask(chat, "Tokyo?", "noon")
    with pytest.raises(InvalidInput) as refused:
        fork_conversation(
            message=message_of(chat, "noon"),
            client_id="f",
            owner=chat.tenant.member,
            actor=chat.actor,
        )
    assert "more than 1 message" in refused.value.message
    assert "Fork at an earlier answer." in refused.value.message


def test_a_fork_copies_the_path_and_runs_nothing(chat: Chat) -> None:
    """The copy goes on by itself, with its cards, and the old conversation stays as it was. REL-2447, REL-2468: its title says so, once."""
    chat.model.call(("counting__plain", {"text": "boom"}))
    sent = chat.send("one")
    chat.watching.turn("waiting_for_approval")
    with pytest.raises(Conflict):
        fork_conversation(
            message=chat.calls()[0].message,
            client_id="f",
            owner=chat.tenant.member,
            actor=chat.actor,
        )
    stop_turn(turn=sent.turn, actor=chat.actor)
    ask(chat, "two", "refused then")
    old = chat.snapshot()
    new, again = (
        fork_conversation(
            message=message_of(chat, "refused then"),
            client_id="f",
            owner=chat.tenant.member,
            actor=chat.actor,
        )
        for _ in range(2)
    )
    assert again == new
    assert new.forked_from == chat.conversation.pk
    chat.conversation.refresh_from_db()
    assert chat.conversation.title
    assert new.title == f"Fork of {chat.conversation.title}"
    assert new.leaf_id is not None
    answer = Message.objects.for_workspace(chat.tenant.workspace).fetch(new.leaf_id)
    of_fork = fork_conversation(
        message=answer, client_id="g", owner=chat.tenant.member, actor=chat.actor
    )
    assert of_fork.title == new.title
    copied = path_to(chat.tenant.workspace.pk, new.leaf_id)
    assert [row.text for row in copied] == texts_of(chat)
    calls = ToolCall.objects.for_workspace(chat.tenant.workspace).filter(turn__conversation=new)
    assert [call.status for call in calls] == ["cancelled"]
    assert chat.snapshot() == old
    assert chat.server.calls == []


def test_an_export_follows_the_shown_path(chat: Chat) -> None:
    """SEC-90: what looks like a secret is masked, and what stands on other branches is not in it."""
    turn = ask(chat, "my key is sk-abcdefghijklmnopqrstuvwxyz0123456789", "first ```ticks``` here")
    chat.model.call(("counting__plain", {"text": "boom"}))
    chat.watching.forget()
    regenerate(turn=turn, client_id="again", actor=chat.actor)
    chat.watching.turn("waiting_for_approval")
    stop_turn(turn=chat.calls()[0].turn, actor=chat.actor)
    conversation = chat.reload_conversation()
    text = export_conversation(conversation, ExportFormat.MARKDOWN).body
    assert "Tool call `counting.plain`: cancelled" in text
    assert "first" not in text
    assert "sk-abc" not in text
    exported = json.loads(export_conversation(conversation, ExportFormat.JSON).body)
    assert [entry["role"] for entry in exported["messages"]] == ["user", "assistant"]
    assert exported["messages"][1]["tool_calls"][0]["arguments"] == {"text": "boom"}
    show_branch(message=message_of(chat, "first ```ticks``` here"), actor=chat.actor)
    made = export_conversation(chat.reload_conversation(), ExportFormat.MARKDOWN)
    assert "first" in made.body
    assert "Tool call" not in made.body
    assert made.name.endswith(".md")


def test_an_export_says_when_by_the_readers_clock(chat: Chat) -> None:
    """REL-853, REL-855: in their formats and with the time zone; for programs it is in UTC."""
    ask(chat, "hello", "hi")
    conversation = chat.reload_conversation()
    for_programs = export_conversation(conversation, ExportFormat.JSON).body
    usual = export_conversation(conversation, ExportFormat.MARKDOWN).body
    assert re.search(r"^## You, \d+ \w{3} \d{4}, \d\d:\d\d UTC$", usual, re.M)
    with written_for(Formats(time_zone="Asia/Tokyo", date_format="YYYY-MM-DD")):
        chosen = export_conversation(conversation, ExportFormat.MARKDOWN).body
        assert export_conversation(conversation, ExportFormat.JSON).body == for_programs
    assert re.search(r"^## You, \d{4}-\d\d-\d\d, \d\d:\d\d \(Asia/Tokyo\)$", chosen, re.M)


def test_an_export_says_how_much_of_a_result_it_leaves_out(chat: Chat) -> None:
    """Ours: in words for people, as a number for programs."""
    chat.model.call(("counting__plain", {"text": "boom"}))
    chat.send("Call it.")
    chat.watching.turn("waiting_for_approval")
    stop_turn(turn=chat.calls()[0].turn, actor=chat.actor)
    (call,) = chat.calls()
    call.model_text = "a word " * 3_000
    call.save()
    conversation = chat.reload_conversation()
    text = export_conversation(conversation, ExportFormat.MARKDOWN).body
    assert "The other 1,000 characters are in the chat." in text
    exported = json.loads(export_conversation(conversation, ExportFormat.JSON).body)
    (exported_call,) = exported["messages"][-1]["tool_calls"]
    assert exported_call["result_left_out"] == 1_000
    assert len(exported_call["result"]) == 20_000
