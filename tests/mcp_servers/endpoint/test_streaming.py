"""Answers of the endpoint that take long, as streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.runtime import Pending
from mcp_servers.endpoint import streaming
from mcp_servers.endpoint.protocol import ClientRequest, EndpointResponse
from mcp_servers.models import McpTool
from tests.config.telemetry.tracing import collecting
from tests.factories import Tenant
from tests.fakes.full_server import FullServer
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.endpoint.leaving import Leaving, leaving_client, runs_by_itself
from tests.mcp_servers.factories import tool_of
from tests.patience import PATIENCE, wait_until
from workspaces.process import metrics

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are not there at once are streamed."""
    monkeypatch.setattr(streaming, "PATIENCE", 0.0)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.02)


def messages_in(body: bytes) -> list[Any]:
    """The messages of a stream."""
    lines = body.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


@pytest.mark.usefixtures("streamed")
def test_an_answer_that_takes_long_begins_before_it_is_there(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2931: clients that wait a minute for the beginning of an answer, or for a sign of life, get both."""
    client = McpClient(tenant, token_for(tenant))
    runs_by_itself(tool_of(silent.server, "steps"))
    headers, body = client.message(
        "tools/call",
        {
            "name": "full__steps",
            "arguments": {"count": 3, "seconds": 0.2},
            "_meta": {"progressToken": "mine"},
        },
    )
    call = Leaving(client.url, headers, json.dumps(body).encode())
    wait_until(lambda: call.body)
    assert (call.status, call.body[:2]) == (200, b": ")
    call.wait()
    *steps, answer = messages_in(call.body)
    assert {step["method"] for step in steps} == {"notifications/progress"}
    assert {step["params"]["progressToken"] for step in steps} == {"mine"}
    values = [step["params"]["progress"] for step in steps]
    assert values == sorted(set(values))
    assert (answer["id"], answer["result"]["isError"]) == (1, False)


@pytest.mark.usefixtures("streamed")
def test_a_stream_ends_as_any_answer_does(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2931: who hangs up on it ends the call of a client of today, and of no other. A restart is told."""
    server, _ = full
    token = token_for(tenant)
    todays, before = McpClient(tenant, token, TODAYS), McpClient(tenant, token, BEFORE)
    calls = [
        leaving_client(client, request_id, seconds=60 + request_id)
        for client, request_id in ((before, 7), (todays, 8), (before, 9))
    ]
    wait_until(lambda: len(server.calls) == 3 and all(call.body for call in calls))
    *leaving, waiting = calls
    for call in leaving:
        call.leave()
    wait_until(lambda: server.cancelled)
    assert server.cancelled == [68]
    runtime.shutdown(0.1)
    waiting.wait()
    (answer,) = messages_in(waiting.body)
    assert answer["id"] == 9
    assert "restarted" in answer["error"]["message"]


@pytest.mark.usefixtures("streamed")
def test_a_request_is_measured_until_its_stream_ends(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-3132: its metric and its span, also where the client hangs up."""
    client = McpClient(tenant, token_for(tenant))

    def measured() -> list[float]:
        route, name = {"route": "mcp_endpoint"}, "trellis_http_request_seconds"
        names = (f"{name}_count", f"{name}_sum")
        return [metrics.registry.get_sample_value(one, route) or 0.0 for one in names]

    before = measured()
    with collecting() as collected:
        call = leaving_client(client)
        wait_until(lambda: call.body)
        assert (measured(), collected.named("POST")) == (before, [])
        call.leave()
        leaving_client(client, seconds=0).wait()
        spans = collected.named("POST")
    count, total = (now - then for now, then in zip(measured(), before, strict=True))
    assert count == len(spans) == 2
    lengths = [(span.end_time or 0) - (span.start_time or 0) for span in spans]
    assert sum(lengths) / 1e9 == pytest.approx(total, abs=0.5)


async def test_a_stream_shows_that_it_is_still_there_and_breaks_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-2931: some clients end a line where Unicode has a break, and JSON has none."""
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(streaming, "KEEP_ALIVE_SECONDS", 0.02)
    text = "one\u2028two\u2029three\x85four"
    go_on = asyncio.Event()
    here = asyncio.get_running_loop()

    async def work() -> EndpointResponse:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go_on.wait(), here))
        return EndpointResponse(body=json.dumps(text, ensure_ascii=False).encode())

    pending = await asyncio.to_thread(Pending, work())
    asked = ClientRequest(cast("Any", None))
    heard: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for piece in streaming.stream(pending, asked, b""):
            heard.append(piece)
            if len(heard) == 3:
                go_on.set()
    *signs, answer = heard
    assert set(signs) == {": still here\n\n"}
    kind, data, end = answer.splitlines()
    assert (kind, end) == ("event: message", "")
    assert json.loads(data.removeprefix("data: ")) == text
