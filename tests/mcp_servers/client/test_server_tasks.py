"""Calls that servers turn into tasks, of both kinds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import mcp_types
import pytest

from mcp_servers.client.connections import calls
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.server_tasks import LEAST_POLL_SECONDS
from mcp_servers.client.inputs import AskedInput, InputAction, InputKind, TaskStarted
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import raw_tool
from tests.fakes.task_server import FORM, TaskServer
from tests.mcp_servers.client.helpers import Person, send, spec_for, text_of, within
from tests.patience import PATIENCE

WORKING = {"status": "working", "statusMessage": "half way"}
BOTH = pytest.mark.parametrize("is_modern", [False, True], ids=["2025-11-25", "extension"])


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts task servers, and ends them."""
    made: list[TaskServer] = []

    def start(*states: dict[str, Any], is_modern: bool) -> tuple[TaskServer, Any]:
        made.append(TaskServer(list(states), is_modern=is_modern))
        era = Protocol.MODERN if is_modern else Protocol.LEGACY
        return made[-1], spec_for(made[-1].url, protocol=era, transport="streamable_http")

    yield start
    for server in made:
        server.stop()


def done(is_modern: bool) -> dict[str, Any]:
    """The last state of a task that went well."""
    result = {"content": [{"type": "text", "text": "the result"}], "resultType": "complete"}
    return {"status": "completed", **({"result": result} if is_modern else {})}


@BOTH
async def test_a_task_is_started_followed_and_fetched(serve: Any, is_modern: bool) -> None:
    """MCP 2025-11-25, Tasks; extension Tasks: from the handle to the result, with word of how it goes."""
    _, spec = serve(WORKING, WORKING, done(is_modern), is_modern=is_modern)
    started = await send(spec, "work", as_task=True, limits=within(60, 60))
    assert isinstance(started, TaskStarted)
    assert (started.task_id, started.poll_seconds, started.ttl_seconds) == ("task-1", 0.3, 60.0)
    person = Person()
    result = calls.follow_task(spec, "task-1", limits=within(PATIENCE), listener=person)
    assert await text_of(result) == "the result"
    assert [one.message for one in person.progress] == ["half way"]


@BOTH
async def test_a_call_that_is_not_to_be_a_task_is_none(serve: Any, is_modern: bool) -> None:
    """The server is asked for a task only by the call that wants one."""
    server, spec = serve(WORKING, is_modern=is_modern)
    assert await text_of(send(spec, "work")) == "the result"
    (called,) = [body for _, _, body in server.requests if body and body["method"] == "tools/call"]
    assert "task" not in called["params"]
    assert "io.modelcontextprotocol/tasks" not in str(called["params"])


async def test_a_server_without_tasks_gets_an_ordinary_call() -> None:
    """As a task where the server can; otherwise as ever."""
    from tests.fakes.mcp_server import RawServer

    server = RawServer(tools=[raw_tool("echo")])
    try:
        spec = spec_for(server.url, protocol=Protocol.LEGACY)
        assert await text_of(send(spec, "echo", {"a": 1}, as_task=True)) == '{"a": 1}'
        (called,) = [b for _, _, b in server.requests if b and b.get("method") == "tools/call"]
        assert "task" not in called["params"]
    finally:
        server.stop()


@BOTH
async def test_other_ends_of_a_task_are_typed(serve: Any, is_modern: bool) -> None:
    """Cancelled, failed, unknown: each of its own kind."""
    _, spec = serve({"status": "cancelled"}, is_modern=is_modern)
    with pytest.raises(CallFailed) as caught:
        await calls.follow_task(spec, "task-1", limits=within(PATIENCE))
    assert caught.value.kind == "task_cancelled"

    failed = {"status": "failed", "error": {"code": -32603, "message": "the disk is full"}}
    _, spec = serve(failed, is_modern=is_modern)
    with pytest.raises(RpcError) as raised:
        await calls.follow_task(spec, "task-1", limits=within(PATIENCE))
    assert raised.value.message == "the disk is full"

    with pytest.raises(CallFailed) as caught:
        await calls.follow_task(spec, "task-of-another", limits=within(PATIENCE))
    assert caught.value.kind == "task_gone"
    with pytest.raises(CallFailed) as caught:
        await calls.cancel_task(spec, "task-of-another")
    assert caught.value.kind == "task_gone"


@BOTH
async def test_a_task_can_be_given_up(serve: Any, is_modern: bool) -> None:
    """MCP, Tasks, Cancellation."""
    server, spec = serve(WORKING, is_modern=is_modern)
    await calls.cancel_task(spec, "task-1")
    assert server.cancelled == ["task-1"]


@BOTH
async def test_a_task_without_end_is_left(serve: Any, is_modern: bool) -> None:
    """Each answer counts as progress; the hard limit ends the wait, and asks no faster than allowed."""
    server, spec = serve(WORKING, is_modern=is_modern)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        # On a busy machine too, one answer comes within the first limit; all of the second is longer.
        await calls.follow_task(spec, "task-1", limits=within(3.0, 4.0))
    seconds = time.monotonic() - started
    assert 3.5 < seconds < PATIENCE
    assert server.methods().count("tasks/get") <= 1 + seconds / LEAST_POLL_SECONDS


async def test_what_a_task_of_the_extension_asks_is_answered_once(serve: Any) -> None:
    """Extension Tasks: input_required, answered with tasks/update; a person's time does not count."""
    request = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Which size?", "requestedSchema": FORM},
    }
    waiting = {"status": "input_required", "inputRequests": {"k1": request}}
    server, spec = serve(waiting, waiting, waiting, done(True), is_modern=True)
    limit = 5.0  # also on a busy machine all else takes less

    async def slowly(asked: AskedInput) -> None:
        await asyncio.sleep(limit + 0.2)

    person = Person(content={"size": "L"}, think=slowly)
    result = calls.follow_task(spec, "task-1", limits=within(limit), listener=person)
    assert await text_of(result) == "the result"
    assert [(one.key, one.kind) for one in person.asked] == [("k1", InputKind.FORM)]
    assert server.updates == [{"k1": {"action": "accept", "content": {"size": "L"}}}]


async def test_an_older_task_that_wants_input_is_fetched_at_once(serve: Any) -> None:
    """MCP 2025-11-25, Tasks: the questions come while its result is waited for."""
    server, spec = serve({"status": "input_required"}, is_modern=False)
    person = Person(InputAction.DECLINE)
    result = await calls.follow_task(spec, "task-1", limits=within(PATIENCE), listener=person)
    assert isinstance(result, mcp_types.CallToolResult)
    assert server.methods().count("tasks/result") == 1
