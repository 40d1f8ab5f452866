"""How models that can only write name tools, and what they read of their own words."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from chat.services.buds import update_bud
from mcp_servers.models import McpServer
from tests.chat.conftest import Chat
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import http_server, looked_at


@pytest.fixture
def writing(chat: Chat) -> Chat:
    """The model can only write."""
    chat.bud.tool_protocol = "fenced_json"
    chat.bud.save(update_fields=["tool_protocol"])
    return chat


@pytest.fixture
def twin(writing: Chat) -> Iterator[McpServer]:
    """A second server with the same tools."""
    server = CountingServer()
    row = looked_at(
        writing.tenant,
        http_server(writing.tenant, server.url, name="twin", trusts_annotations=True),
    )
    config = {"servers": [str(writing.row.pk), str(row.pk)]}
    update_bud(bud=writing.bud, actor=writing.tenant.actor(), values={"mcp_config": config})
    yield row
    server.stop()


def block_of(name: str, text: str = "hi") -> str:
    return f'```json\n{{ "command":"{name}", "arguments": {{"text": "{text}"}} }}\n```'


def last_message(chat: Chat, role: str) -> str:
    listed = [one for one in chat.model.requests[-1]["messages"] if one["role"] == role]
    return str(listed[-1]["content"])


@pytest.mark.parametrize("name", ["counting__echo", "echo", "counting.echo"])
def test_a_tool_is_called_by_any_name_that_means_it_alone(writing: Chat, name: str) -> None:
    """REL-206: the row and the log know the tool by its own name, whatever the model wrote."""
    writing.model.say(f"Let me look.\n\n{block_of(name)}")
    writing.model.say("done")
    assert writing.ask().status == "completed"
    assert writing.server.calls == [("echo", {"text": "hi"})]
    [call] = writing.calls()
    assert (call.tool_name, call.function_name) == ("echo", "counting__echo")
    assert last_message(writing, "assistant") == f"Let me look.\n\n{block_of(name)}"


@pytest.mark.parametrize("name", ["Echo", "counting.ech", "other.echo", "counting..echo"])
def test_what_only_looks_alike_is_no_tool(writing: Chat, name: str) -> None:
    """REL-206, SEC-65: to the letter."""
    writing.model.say(block_of(name))
    writing.model.say("done")
    writing.ask()
    assert writing.server.calls == []
    assert "There is no tool named" in last_message(writing, "user")


def test_a_name_that_two_servers_share_is_told_and_calls_nothing(
    writing: Chat, twin: McpServer
) -> None:
    """REL-206, SEC-65: a bare name never decides between servers; with the server's name it is clear."""
    writing.model.say(block_of("echo"))
    writing.model.say(block_of("counting.echo"))
    writing.model.say("done")
    writing.ask()
    assert writing.server.calls == [("echo", {"text": "hi"})]
    listed = [
        one["content"] for one in writing.model.requests[1]["messages"] if one["role"] == "user"
    ]
    assert "Several tools are named" in listed[-1]
    assert "counting__echo" in listed[-1]
    assert "twin__echo" in listed[-1]


@pytest.mark.parametrize("name", ["echo", "counting.echo"])
def test_a_model_with_functions_uses_their_names(chat: Chat, name: str) -> None:
    """SEC-66: what was offered under one name is called by that name."""
    chat.model.call((name, {"text": "hi"}))
    chat.model.say("done")
    chat.ask()
    assert chat.server.calls == []


def test_the_history_quotes_the_models_own_blocks(writing: Chat) -> None:
    """REL-206: with its own spaces, marks and lists, also in later turns; one that it left open is closed."""
    own = (
        '~~~json\n[{"command": "echo", "arguments": {"text": "a"}},\n'
        ' {"command":"counting.echo","arguments":{"text":"b"}}]\n~~~'
    )
    left_open = '```json\n{"arguments": {"text": "c"}, "command": "echo"}'
    writing.model.say(f"{own}\n\n{left_open}")
    writing.model.say("done")
    writing.ask()
    assert sorted(given["text"] for _, given in writing.server.calls) == ["a", "b", "c"]
    writing.model.say("bye")
    writing.watching.forget()
    writing.ask("And now?")
    quoted = [
        one["content"]
        for one in writing.model.requests[-1]["messages"]
        if one["role"] == "assistant"
    ]
    assert quoted == [f"{own}\n\n{left_open}\n```", "done"]


def test_a_block_that_cannot_be_read_is_shown_to_its_model(writing: Chat) -> None:
    """REL-206: so that it can see what was wrong."""
    broken = '```json\n{"command": "echo", "arguments": {"text": }\n```'
    writing.model.say(broken)
    writing.model.say("done")
    writing.ask()
    assert last_message(writing, "assistant") == broken
    assert "must fit this schema" in last_message(writing, "user")


def test_a_known_secret_in_a_block_is_masked_where_it_is_kept(writing: Chat) -> None:
    """SEC-94: the block is stored beside the text, and masked like it."""
    writing.model.say(block_of("echo", "sk-scripted-canary-0123456789"))
    writing.model.say("done")
    writing.ask()
    kept = [one["text"] for one in writing.snapshot()["messages"]]
    assert "canary" not in json.dumps(kept)
    assert "sk-scripted-canary-0123456789" not in last_message(writing, "assistant")
