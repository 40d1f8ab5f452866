"""Every transport, in both eras of the protocol, against the SDK's own server."""

from __future__ import annotations

import asyncio

import pytest

from mcp_servers.client.connections import calls, completion, runtime
from mcp_servers.client.connections.facts import ConnectionState
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.values import Protocol
from tests.mcp_servers.client.conftest import TRANSPORTS, Everywhere
from tests.mcp_servers.client.helpers import send, text_of, within
from tests.patience import PATIENCE

ERAS = [Protocol.LEGACY, Protocol.MODERN, Protocol.AUTO]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_everything_works_over_each_transport(
    everywhere: Everywhere, transport: str, era: Protocol
) -> None:
    """Lists, calls, resources, prompts and completions; the facts say how."""
    spec = everywhere.spec(transport, protocol=era)
    listing = await runtime.run(pool.list_offers(spec))
    assert {tool["name"] for tool in listing.tools} >= {"echo", "ask_form", "steps"}
    assert [resource["uri"] for resource in listing.resources] == ["memo://note"]
    assert [one["uriTemplate"] for one in listing.resource_templates] == ["memo://{name}/page"]
    assert [prompt["name"] for prompt in listing.prompts] == ["greet"]
    assert listing.warnings == ()
    assert listing.facts.transport == transport
    assert listing.facts.was_negotiated is (era is Protocol.AUTO)
    expected = "2025-11-25" if era is Protocol.LEGACY else "2026-07-28"
    assert listing.facts.protocol_revision == expected
    assert listing.facts.instructions == "Be kind."

    assert await text_of(send(spec, "echo", {"text": "hällo"})) == "hällo"
    read = await calls.read_resource(spec, "memo://note", limits=within(PATIENCE))
    assert read.contents[0].text == "the note"  # type: ignore[union-attr]
    prompt = await calls.get_prompt(spec, "greet", {"name": "Anna"}, limits=within(PATIENCE))
    assert "Anna" in prompt.messages[0].content.text  # type: ignore[union-attr]
    suggested = await completion.complete(
        spec, ref="prompt", name="greet", argument="name", value="ann"
    )
    assert suggested == ["anna", "annika"]
    status = pool.state_of(spec)
    assert (status.state, status.in_flight) == (ConnectionState.CONNECTED, 0)
    assert status.transport == transport


async def test_a_program_may_take_longer_to_start_than_the_sdk_waits(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2391: it was said to answer, but not with MCP."""
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.05)
    spec = everywhere.spec("stdio", protocol=Protocol.MODERN)
    assert await text_of(send(spec, "echo", {"text": "warm"})) == "warm"


@pytest.mark.parametrize("era", [Protocol.LEGACY, Protocol.MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_cancelled_call_is_told_to_the_server(
    everywhere: Everywhere, transport: str, era: Protocol
) -> None:
    """REL-34: whatever the transport, the tool learns that nobody waits, and the connection lives on."""
    spec = everywhere.spec(transport, protocol=era)
    await text_of(send(spec, "echo", {"text": "warm"}))
    with pytest.raises(TimeoutError):
        await send(spec, "silent", {"seconds": 30}, limits=within(0.4))
    if transport != "stdio":
        async with asyncio.timeout(PATIENCE):
            while not everywhere.server.cancelled:
                await asyncio.sleep(0.02)
    assert await text_of(send(spec, "echo", {"text": "still"})) == "still"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_calls_overlap_on_each_transport(everywhere: Everywhere, transport: str) -> None:
    """REL-07: one slow call holds up no other."""
    spec = everywhere.spec(transport)
    await text_of(send(spec, "echo", {"text": "warm"}))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(send(spec, "silent", {"seconds": 1}) for _ in range(12)))
    assert loop.time() - started < 8
