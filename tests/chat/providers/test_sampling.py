"""A server asks the model, through a person."""

from __future__ import annotations

from uuid import UUID

from chat.services.inputs import answer_input
from mcp_servers.client.inputs import InputAction
from mcp_servers.models import InputRequest, McpServer
from tests.chat.conftest import Chat

RHYME = ("asking__rhyme", {"topic": "soup"})


def let_ask(chat: Chat) -> None:
    rows = McpServer.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.row.pk)
    rows.update(sampling="ask")


def wait_for_question(chat: Chat) -> InputRequest:
    chat.model.call(RHYME)
    chat.send("My secret-canary question")
    shown = chat.watching.question()
    assert (shown["kind"], shown["model"]) == ("sampling", "m")
    return InputRequest.objects.for_workspace(chat.tenant.workspace).fetch(UUID(shown["id"]))


def test_a_server_gets_what_the_model_wrote_and_sees_nothing_else(asked: Chat) -> None:
    """SEC-68: only after a yes, without tools, and without a word of the conversation."""
    let_ask(asked)
    row = wait_for_question(asked)
    assert len(asked.model.requests) == 1
    asked.model.say("Soup is good to eat")
    asked.model.say("done")
    answer_input(request=row, action=InputAction.ACCEPT, actor=asked.actor)
    asked.watching.turn("completed")
    sampled = asked.model.requests[1]
    assert sampled["messages"] == [
        {"role": "system", "content": "Rhyme."},
        {"role": "user", "content": "Write about soup"},
    ]
    assert "tools" not in sampled
    assert sampled["max_tokens"] == 50
    assert "secret-canary" not in str(sampled)
    content = asked.model.requests[2]["messages"][-1]["content"]
    assert content == "m: Soup is good to eat"
    row.refresh_from_db()
    assert row.tokens_used > 0


def test_a_refused_request_costs_nothing(asked: Chat) -> None:
    """SEC-68: the server hears no, the model is not asked, and the turn goes on."""
    let_ask(asked)
    row = wait_for_question(asked)
    asked.model.say("done")
    answer_input(request=row, action=InputAction.DECLINE, actor=asked.actor)
    asked.watching.turn("completed")
    assert len(asked.model.requests) == 2
    assert asked.server.done == []


def test_sampling_is_off_until_somebody_allows_it(asked: Chat) -> None:
    """SEC-68: nobody is even asked."""
    asked.model.call(RHYME)
    asked.model.say("done")
    asked.ask()
    assert asked.asked() == []
    assert len(asked.model.requests) == 2
