"""The page of one turn: what was asked and sent, and where the time went."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry
from chat.models import Conversation, ModelProvider
from chat.providers import standing_in
from chat.providers.openai_compatible import MOST_ATTEMPTS
from chat.services import turn_record
from chat.services.buds import update_bud
from chat.services.conversations import erase_conversation
from chat.services.turn_record import read_turn
from chat.values import TurnStatus
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import Answer, ScriptedModel, chunk


def where(chat: Chat, turn_id: object) -> str:
    return f"/w/{chat.tenant.workspace.slug}/audit/turns/{turn_id}/"


def opened(chat: Chat) -> int:
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    return rows.filter(action=Action.BODY_OPENED.value).count()


@pytest.mark.both_engines
def test_a_turn_shows_question_prompt_times_and_calls(chat: Chat) -> None:
    """REL-444."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("It said hi")
    turn = chat.ask("Say hi, please")
    page = chat.tenant.client("auditor").get(where(chat, turn.pk))
    found = page.context["found"]
    assert (found.contents.question, found.contents.answer) == ("Say hi, please", "It said hi")
    sent = chat.model.requests[-1]["messages"]
    assert [one.role for one in found.contents.prompt] == [one["role"] for one in sent]
    assert found.contents.prompt[-1].text == sent[-1]["content"]
    [first] = [at for at, one in enumerate(found.contents.prompt) if one.request == 1]
    earlier = [one["role"] for one in chat.model.requests[0]["messages"]]
    assert [one.role for one in found.contents.prompt[:first]] == earlier
    assert "answer to request 1" in page.content.decode()
    assert [span.kind for span in found.spans] == ["model", "tool", "model"]
    call = chat.calls()[0]
    assert f"audit/calls/{call.pk}/" in page.content.decode()
    assert opened(chat) == 1


def test_the_prompt_has_the_instructions_of_then(chat: Chat) -> None:
    """REL-444: as the bud's versions keep them."""
    actor = chat.tenant.actor("admin")
    bud = update_bud(bud=chat.bud, actor=actor, values={"system_prompt": "Be kind"})
    chat.model.say("Hello")
    turn = chat.ask()
    update_bud(bud=bud, actor=actor, values={"system_prompt": "Be strict"})
    page = chat.tenant.client("auditor").get(where(chat, turn.pk))
    contents = page.context["found"].contents
    assert contents.prompt[0].text == "Be kind"
    assert not contents.is_bud_changed


def test_only_auditors_read_what_was_said_in_others_turns(chat: Chat) -> None:
    """REL-444, SEC-350: an admin sees times and entries; reading the rest is recorded first."""
    chat.model.say("A secret answer")
    turn = chat.ask("A secret question")
    page = chat.tenant.client("admin").get(where(chat, turn.pk))
    assert page.status_code == 200
    assert b"secret" not in page.content
    assert page.context["found"].spans
    assert chat.tenant.client("member").get(where(chat, turn.pk)).status_code == 403
    assert opened(chat) == 0
    head = {"X-Workspace": chat.tenant.workspace.slug}
    api = f"/api/audit-turns/{turn.pk}/"
    assert chat.tenant.client("admin").get(api, headers=head).json()["contents"] is None
    body = chat.tenant.client("auditor").get(api, headers=head).json()
    assert body["contents"]["question"] == "A secret question"
    assert opened(chat) == 1


def test_what_was_said_before_an_answer_broke_off_is_shown(chat: Chat) -> None:
    """REL-1308: as in the chat; the page called it nothing."""
    chat.model.give(Answer([chunk({"content": "Half an answer"})]))
    turn = chat.ask("Say hi, please")
    assert turn.status == TurnStatus.FAILED
    client = chat.tenant.client("auditor")
    contents = client.get(where(chat, turn.pk)).context["found"].contents
    assert contents.answer == "Half an answer"
    assert "Half an answer" not in str(contents.prompt)
    admin = chat.tenant.client("admin").get(where(chat, turn.pk)).content.decode()
    assert "Half an answer" not in admin


def test_the_page_says_that_another_provider_answered(chat: Chat) -> None:
    """REL-1308: which one failed and why, for those who have to mend it."""
    assert chat.bud.provider is not None
    other = ScriptedModel()
    second = ModelProvider.objects.create(
        workspace=chat.tenant.workspace,
        name="Second",
        base_url=other.base_url,
        default_model="second-model",
    )
    rows = ModelProvider.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=chat.bud.provider.pk).update(fallback=second)
    standing_in._failures.clear()
    for _ in range(MOST_ATTEMPTS):
        chat.model.fail(503)
    other.say("From the second")
    try:
        turn = chat.ask()
    finally:
        standing_in._failures.clear()
        other.stop()
    page = chat.tenant.client("admin").get(where(chat, turn.pk)).content.decode()
    assert "second-model of “Second” answers instead." in page


def test_a_deleted_conversation_is_not_read_any_more(chat: Chat) -> None:
    """SEC-350: of an erased one the log's entries stay."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("A secret answer")
    turn = chat.ask("A secret question")
    rows = Conversation.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=chat.conversation.pk).update(deleted_at=timezone.now())
    client = chat.tenant.client("auditor")
    page = client.get(where(chat, turn.pk))
    assert b"secret" not in page.content
    assert b"The person deleted this conversation" in page.content
    erase_conversation(conversation=rows.get(pk=chat.conversation.pk), actor=chat.actor)
    page = client.get(where(chat, turn.pk))
    assert page.status_code == 200
    assert b"no longer exists" in page.content
    found = read_turn(
        workspace_id=chat.tenant.workspace.pk,
        turn_id=turn.pk,
        actor=chat.tenant.actor("auditor"),
    )
    assert len(found.entries) == 2


def test_question_and_answer_are_rendered_and_the_prompt_stays_as_it_was_sent(chat: Chat) -> None:
    """REL-835: the page's script renders what the page holds as text; nothing in it is HTML of the page."""
    answer = "**Bold** <img src=https://evil.example/p.png> <script>alert(1)</script>"
    chat.model.say(answer)
    turn = chat.ask("Is it *so*?")
    page = chat.tenant.client("auditor").get(where(chat, turn.pk)).content.decode()
    assert 'data-said="question"' in page
    assert 'data-said="answer"' in page
    assert page.count("data-source") == 2
    assert "src/turn" in page or "turn-" in page
    assert "<img src=https" not in page
    assert "<script>alert" not in page
    prompt = page.split('class="prompt-messages"', 1)[1].split("</ol>", 1)[0]
    assert "data-s" not in prompt
    assert "Is it *so*?" in prompt


def test_a_turn_with_many_entries_says_that_it_shows_the_newest(chat: Chat) -> None:
    """REL-914: and leads to all of them in the log; programs are told, too."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("It said hi")
    turn = chat.ask("Say hi, please")
    client = chat.tenant.client("auditor")
    text = "come from the newest entry of the turn"
    headers = {"X-Workspace": chat.tenant.workspace.slug}

    def has_more() -> bool:
        answer = client.get(f"/api/audit-turns/{turn.pk}/", headers=headers).json()
        return bool(answer["has_more_entries"])

    assert text not in client.get(where(chat, turn.pk)).content.decode()
    assert not has_more()
    with patch.object(turn_record, "MOST_ENTRIES", 1):
        page = client.get(where(chat, turn.pk)).content.decode()
        assert has_more()
    assert text in page
    assert f"turn={turn.pk}" in page
