"""Another bud is named for one message, as people do with @: it answers that one, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from chat.models import Bud, ModelProvider, ProviderModel, Turn
from chat.services.branches import edit_message, fork_conversation, regenerate
from chat.services.bud_quality import quality_of
from chat.services.buds import create_bud
from chat.services.exports import ExportFormat, export_conversation
from chat.services.knowledge import add_knowledge
from chat.services.turns import QueuedSend, SentTurn, send_or_queue
from chat.services.usage import usage_of
from chat.values import WhenBusy
from tests.chat.conftest import Chat
from tests.chat.engine.queueing import busy, until_answered
from tests.chat.services.branching import ask, message_of, texts_of
from tests.factories import TwoTenants
from workspaces.errors import Conflict, InvalidInput


def another_bud(chat: Chat, name: str = "Poet", **values: Any) -> Bud:
    """A bud with instructions and a model of its own, at the same scripted model, and without the server."""
    given = {"slug": name.lower(), "name": name, "system_prompt": f"You are {name}.", **values}
    return create_bud(
        workspace_id=chat.tenant.workspace.pk,
        actor=chat.tenant.actor(),
        values={"model": "poetic", "takes_all_tools": False, **given},
        provider_id=ModelProvider.objects.for_workspace(chat.tenant.workspace).get().pk,
    )


def say(chat: Chat, text: str, bud: Bud | None, client_id: str = "") -> SentTurn | QueuedSend:
    return send_or_queue(
        conversation=chat.conversation,
        client_id=client_id or str(uuid7()),
        text=text,
        actor=chat.actor,
        when_busy=WhenBusy.QUEUE,
        bud_id=bud.pk if bud else None,
    )


def ask_bud(chat: Chat, text: str, bud: Bud, answer: str) -> Turn:
    chat.model.say(answer)
    chat.watching.forget()
    sent = say(chat, text, bud)
    assert isinstance(sent, SentTurn)
    chat.watching.turn("completed")
    return chat.reload(sent.turn)


def tools_in(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}


@pytest.mark.both_engines
def test_a_named_bud_answers_one_message_as_itself(chat: Chat) -> None:
    """REL-650: with its own instructions, model and tools; it reads the conversation, and the next answer is the usual bud's."""
    ask(chat, "one", "first")
    usual = chat.model.requests[-1]
    turn = ask_bud(chat, "two", another_bud(chat), "a poem")
    asked = chat.model.requests[-1]
    system, *rest = [message["content"] for message in asked["messages"]]
    assert system.startswith("You are Poet.")
    assert "Bud, another assistant, gives the others" in system
    assert rest == ["one", "first", "two"]
    assert asked["model"] == "poetic"
    assert tools_in(usual)
    assert not tools_in(usual) & tools_in(asked)
    turns = chat.snapshot()["turns"]
    assert [one["bud_id"] for one in turns] == [None, str(turn.mentioned_bud_id)]
    ask(chat, "three", "third")
    assert chat.model.requests[-1]["model"] == usual["model"]
    assert tools_in(chat.model.requests[-1]) == tools_in(usual)


def test_a_model_that_was_chosen_for_the_chat_is_not_the_named_buds(chat: Chat) -> None:
    """REL-650: whoever chose a model chose it for the conversation's bud."""
    chat.conversation.chosen_model = ProviderModel.objects.create(
        workspace=chat.tenant.workspace, provider=chat.bud.provider, model="chosen"
    )
    chat.conversation.save()
    ask(chat, "one", "first")
    ask_bud(chat, "two", another_bud(chat), "a poem")
    assert [request["model"] for request in chat.model.requests[-2:]] == ["chosen", "poetic"]


def test_a_named_bud_reads_its_own_files(chat: Chat) -> None:
    """REL-650: what it knows, not what the conversation's bud knows; and the log names it."""
    poet = another_bud(chat)
    admin = chat.tenant.actor("admin")
    add_knowledge(bud=poet, name="odes.md", content=b"The nightingale sings.", actor=admin)
    chat.model.call(("search_knowledge", {"query": "nightingale"}))
    turn = ask_bud(chat, "find", poet, "found")
    assert "The nightingale sings." in str(chat.model.requests[-1]["messages"])
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(turn_id=turn.pk)
    assert {entry.bud_name for entry in entries if entry.bud_name} == {"Poet"}


def test_a_waiting_message_keeps_the_bud_that_it_names(chat: Chat) -> None:
    """REL-650: it is told with the queue, and answers when the turn before has ended."""
    poet = another_bud(chat)
    hold = busy(chat)
    assert isinstance(say(chat, "and then", poet), QueuedSend)
    event = chat.watching.until(lambda event: event["type"] == "queue.changed")
    assert [row["bud_id"] for row in event["queue"]] == [str(poet.pk)]
    chat.model.say("a poem")
    hold.set()
    until_answered(chat, "a poem")
    assert chat.model.requests[-1]["model"] == "poetic"


def test_an_answer_again_and_another_wording_stay_with_the_named_bud(chat: Chat) -> None:
    """REL-650: so does the copy of the conversation."""
    poet = another_bud(chat)
    turn = ask_bud(chat, "one", poet, "a poem")
    chat.model.say("another poem")
    chat.watching.forget()
    regenerate(turn=turn, client_id="again", actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.model.requests[-1]["model"] == "poetic"
    chat.model.say("a third poem")
    chat.watching.forget()
    edit_message(message=message_of(chat, "one"), client_id="e", text="uno", actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.model.requests[-1]["model"] == "poetic"
    assert texts_of(chat) == ["uno", "a third poem"]
    copy = fork_conversation(
        message=message_of(chat, "a third poem"),
        client_id="fork",
        owner=chat.tenant.member,
        actor=chat.actor,
    )
    copied = Turn.objects.for_workspace(chat.tenant.workspace).get(conversation=copy)
    assert copied.mentioned_bud == poet


def test_reports_and_files_count_the_answer_for_the_bud_that_gave_it(chat: Chat) -> None:
    """REL-650: usage, the bud's quality, and what is downloaded."""
    poet = another_bud(chat)
    ask(chat, "one", "first")
    ask_bud(chat, "two", poet, "a poem")
    tenant = chat.tenant
    used = usage_of(workspace=tenant.workspace, person=tenant.member, days=7)
    assert {(row.bud, row.questions) for row in used.rows} == {("Bud", 1), ("Poet", 1)}
    for bud in (chat.bud, poet):
        assert quality_of(bud=bud, actor=tenant.actor()).turns == 1
    made = export_conversation(chat.reload_conversation(), ExportFormat.MARKDOWN)
    assert "## Poet, " in made.body
    assert "## Bud, " in made.body


def test_the_same_id_names_the_same_bud(chat: Chat) -> None:
    """REL-01: sent again it stores nothing twice, even when the bud is archived meanwhile; for another bud it is refused."""
    poet = another_bud(chat)
    chat.model.say("a poem")
    first = say(chat, "one", poet, client_id="same")
    chat.watching.turn("completed")
    poet.is_archived = True
    poet.save()
    assert say(chat, "one", poet, client_id="same").message.pk == first.message.pk
    with pytest.raises(Conflict):
        say(chat, "one", None, client_id="same")


def test_only_buds_that_the_person_may_use_are_named(
    chat: Chat, two_workspaces: TwoTenants
) -> None:
    """SEC-411: not another workspace's, nor somebody's own, nor an archived one; over REST the field is named."""
    private = another_bud(chat, "Private", visibility="owner")
    archived = another_bud(chat, "Old", is_archived=True)
    foreign = create_bud(
        workspace_id=two_workspaces.b.workspace.pk,
        actor=two_workspaces.b.actor(),
        values={"slug": "theirs", "name": "Theirs"},
    )
    for bud in (private, archived, foreign):
        with pytest.raises(InvalidInput) as refused:
            say(chat, "one", bud)
        assert set(refused.value.fields) == {"bud_id"}
        answer = chat.tenant.client("member").post(
            f"/api/conversations/{chat.conversation.pk}/messages/",
            json.dumps({"client_id": "x", "text": "one", "bud_id": str(bud.pk)}),
            content_type="application/json",
            headers={"X-Workspace": chat.tenant.workspace.slug},
        )
        assert answer.status_code == 422
        assert [one["attr"] for one in answer.json()["errors"]] == ["bud_id"]
    assert not Turn.objects.for_workspace(chat.tenant.workspace).exists()
