"""What servers ask while they work: put to the right person, or to nobody."""

from __future__ import annotations

import asyncio

import pytest

from mcp_servers.client.connections import pool as pool_module
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.inputs import (
    AskedInput,
    InputAction,
    InputAnswer,
    InputAnswers,
    InputKind,
    InputRequired,
)
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.values import Protocol
from tests.mcp_servers.client.conftest import TRANSPORTS, Everywhere
from tests.mcp_servers.client.helpers import Person, send, text_of, within
from tests.patience import PATIENCE

WITHOUT_SENDER = ["sse", "websocket", "stdio"]
MODEL_ANSWER = {"role": "assistant", "model": "m-1", "content": {"type": "text", "text": "hi"}}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_form_is_put_to_whoever_called(everywhere: Everywhere, transport: str) -> None:
    """MCP 2025-11-25, Elicitation, form mode; the answer reaches the tool."""
    spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
    person = Person(content={"size": "L"})
    assert await text_of(send(spec, "ask_form", listener=person)) == "accept L"
    (asked,) = person.asked
    assert (asked.kind, asked.message) == (InputKind.FORM, "Which size?")
    assert asked.schema["properties"] == {"size": {"title": "Size", "type": "string"}}
    for action in (InputAction.DECLINE, InputAction.CANCEL):
        assert await text_of(send(spec, "ask_form", listener=Person(action))) == action.value
    assert await text_of(send(spec, "ask_form")) == "cancel"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_pages_models_and_folders_are_asked_for(
    everywhere: Everywhere, transport: str
) -> None:
    """MCP 2025-11-25: Elicitation, URL mode; Sampling; Roots."""
    spec = everywhere.spec(
        transport,
        protocol=Protocol.LEGACY,
        allows_sampling=True,
        roots=(("file:///work", "work"),),
    )
    person = Person()
    assert await text_of(send(spec, "ask_url", listener=person)) == "accept"
    (asked,) = person.asked
    assert (asked.kind, asked.url) == (InputKind.URL, "https://example.com/in")
    assert asked.elicitation_id == "e-1"
    model = Person(content=MODEL_ANSWER)
    assert await text_of(send(spec, "ask_model", listener=model)) == "m-1: hi"
    assert model.asked[0].kind is InputKind.SAMPLING
    assert model.asked[0].params["maxTokens"] == 50
    assert await text_of(send(spec, "ask_roots", listener=person)) == "file:///work"


async def test_a_server_is_told_what_it_may_ask_for(everywhere: Everywhere) -> None:
    """What is switched off is not offered, so that a server does not even try."""
    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY, allows_elicitation=False)
    for tool in ("ask_form", "ask_model", "ask_roots"):
        person = Person(content=MODEL_ANSWER)
        with pytest.raises(RpcError):
            await send(spec, tool, listener=person)
        assert person.asked == []


async def test_a_refused_model_is_told_as_refused(everywhere: Everywhere) -> None:
    """MCP 2025-11-25, Sampling, Error Handling: the person's no is an error for the server."""
    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY, allows_sampling=True)
    for person in (Person(InputAction.DECLINE), Person(content={"nothing": "useful"})):
        with pytest.raises(RpcError) as caught:
            await send(spec, "ask_model", listener=person)
        assert "not allowed" in caught.value.message
        assert person.asked


@pytest.mark.parametrize("transport", WITHOUT_SENDER)
async def test_a_question_of_one_among_many_calls_is_nobodys(
    everywhere: Everywhere, transport: str
) -> None:
    """SEC-10: where a question carries no sign of its call, and several are under way, no person sees it."""
    spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
    other, asker = Person(content={"size": "S"}), Person(content={"size": "L"})
    waiting = asyncio.create_task(send(spec, "silent", {"seconds": 1.5}, listener=other))
    async with asyncio.timeout(PATIENCE):
        while not pool.state_of(spec).in_flight:
            await asyncio.sleep(0.02)
    assert await text_of(send(spec, "ask_form", listener=asker)) == "cancel"
    assert (other.asked, asker.asked) == ([], [])
    assert await text_of(waiting) == "done"
    # From now on this server gets one call at a time on such a connection, and its questions have an address.
    outcomes = await asyncio.gather(
        *(text_of(send(spec, "ask_form", listener=person)) for person in (other, asker))
    )
    assert outcomes == ["accept S", "accept L"]


class Thinking(Person):
    """Somebody who takes their time."""

    def __init__(self) -> None:
        self.has_decided = asyncio.Event()

        async def think(_asked: AskedInput) -> None:
            await self.has_decided.wait()

        super().__init__(content={"size": "L"}, think=think)


async def _asked_on_a_replaced_connection(
    spec: ConnectionSpec, person: Thinking
) -> asyncio.Task[str]:
    """A call whose question waits, while later calls have got a connection of their own."""
    waiting = asyncio.create_task(text_of(send(spec, "ask_form", listener=person)))
    async with asyncio.timeout(PATIENCE):
        while not person.asked:
            await asyncio.sleep(0.02)
    before = pool._connections[spec.key]
    assert await text_of(send(spec, "ask_form", listener=Person())) == "cancel"
    assert await text_of(send(spec, "echo", {"text": "new"})) == "new"
    assert pool._connections[spec.key] is not before
    return waiting


async def test_a_person_may_think_while_others_have_got_another_connection(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2114: what was replaced ends after a while, but not before they have answered."""
    monkeypatch.setattr(pool_module, "RETIRE_SECONDS", 2.0)
    person = Thinking()
    waiting = await _asked_on_a_replaced_connection(
        everywhere.spec("stdio", protocol=Protocol.LEGACY), person
    )
    await asyncio.wait([waiting], timeout=3.0)
    assert not waiting.done()
    person.has_decided.set()
    assert await asyncio.wait_for(waiting, PATIENCE) == "accept L"


async def test_a_server_that_is_changed_ends_replaced_connections_too(
    everywhere: Everywhere,
) -> None:
    """REL-2114: what a server was disconnected from carries no call any more, whoever still thinks."""
    spec, person = everywhere.spec("stdio", protocol=Protocol.LEGACY), Thinking()
    waiting = await _asked_on_a_replaced_connection(spec, person)
    await runtime.run(pool.drop(spec.server_id))
    with pytest.raises(CallFailed):
        await asyncio.wait_for(waiting, pool_module.RETIRE_SECONDS / 4)
    assert person.given_up


async def test_over_http_each_question_finds_its_call(everywhere: Everywhere) -> None:
    """SEC-10: the answer's own stream is the sign, so many calls may run side by side."""
    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY)
    people = [Person(content={"size": str(number)}) for number in range(6)]
    outcomes = await asyncio.gather(
        *(text_of(send(spec, "ask_form", listener=person)) for person in people)
    )
    assert outcomes == [f"accept {number}" for number in range(6)]


async def test_a_stopped_calls_question_is_not_put_to_the_next_caller(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-10: a server that goes on after a stop asks nobody; the next call gets a connection of its own."""
    spec = everywhere.spec("sse", protocol=Protocol.LEGACY)
    stopped, next_one = Person(), Person(content={"size": "L"})
    with pytest.raises(TimeoutError):
        await send(spec, "silent", {"seconds": 30}, limits=within(0.3), listener=stopped)
    connection = pool._connections[spec.key]
    assert await text_of(send(spec, "ask_form", listener=next_one)) == "cancel"
    assert next_one.asked == []
    assert await text_of(send(spec, "ask_form", listener=next_one)) == "accept L"
    assert pool._connections[spec.key] is not connection


async def test_the_clock_stands_still_while_a_person_thinks(everywhere: Everywhere) -> None:
    """Answers may take longer than the tool's limit, however often it asks."""
    limit = 4.0  # also on a busy machine all else takes less

    async def slowly(asked: AskedInput) -> None:
        await asyncio.sleep(limit + 0.2)

    async def answers_over(transport: str) -> None:
        spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
        person = Person(content={"size": "L"}, think=slowly)
        await text_of(send(spec, "echo", {"text": "warm"}))
        answered = send(spec, "ask_form", listener=person, limits=within(limit))
        assert await text_of(answered) == "accept L"
        with pytest.raises(TimeoutError):
            await send(spec, "silent", {"seconds": 5}, listener=person, limits=within(0.5))

    await asyncio.gather(*map(answers_over, TRANSPORTS))


async def test_a_stop_takes_the_question_back(everywhere: Everywhere) -> None:
    """Nobody is left with a card for a call that is over."""
    started = asyncio.Event()

    async def for_ever(asked: AskedInput) -> None:
        here.call_soon_threadsafe(started.set)
        await asyncio.sleep(60)

    here = asyncio.get_running_loop()
    for transport in TRANSPORTS:
        started.clear()
        person = Person(think=for_ever)
        spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
        task = asyncio.create_task(send(spec, "ask_form", listener=person))
        await asyncio.wait_for(started.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            while not person.given_up:
                await asyncio.sleep(0.02)


async def test_a_listener_that_fails_harms_only_its_answer(everywhere: Everywhere) -> None:
    """A mistake of ours is a cancelled question, never a broken connection."""

    async def fail(asked: AskedInput) -> None:
        raise RuntimeError("a mistake")

    for transport in TRANSPORTS:
        spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
        assert await text_of(send(spec, "ask_form", listener=Person(think=fail))) == "cancel"
        assert await text_of(send(spec, "echo", {"text": "fine"})) == "fine"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_rounds_of_the_newest_revision(everywhere: Everywhere, transport: str) -> None:
    """MCP 2026-07-28, Multi round-trip requests: asked, answered by another request, done."""
    spec = everywhere.spec(transport, protocol=Protocol.MODERN)
    first = await send(spec, "ask_any")
    assert isinstance(first, InputRequired)
    (asked,) = first.asked
    assert (asked.kind, asked.message) == (InputKind.FORM, "Which size?")
    answer = InputAnswer(action=InputAction.ACCEPT, content={"size": "XL"})
    answers = InputAnswers(by_key={asked.key: (asked, answer)}, state=first.state)
    assert await text_of(send(spec, "ask_any", answers=answers)) == "size XL"
    assert everywhere.server.calls == ([] if transport == "stdio" else [("ask_any", "XL")])


async def test_a_tool_that_needs_sessions_says_so(everywhere: Everywhere) -> None:
    """An old-style question on the newest revision: not repeated by itself, and told in words that help."""
    spec = everywhere.spec("streamable_http")
    with pytest.raises(CallFailed) as caught:
        await send(spec, "ask_form", listener=Person())
    assert caught.value.kind == "asks_back"
    assert "with sessions" in caught.value.message


async def test_nothing_is_left_of_questions(everywhere: Everywhere) -> None:
    """REL-36: no task outlives its call."""

    async def tasks() -> int:
        return len(asyncio.all_tasks())

    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY)
    person = Person(content={"size": "L"})
    await text_of(send(spec, "ask_form", listener=person))
    before = await runtime.run(tasks())
    for _ in range(20):
        await text_of(send(spec, "ask_form", listener=person))
    assert await runtime.run(tasks()) <= before + 2
