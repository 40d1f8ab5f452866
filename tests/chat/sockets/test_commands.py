"""What a page may send: our commands, on its own person's rows, and not too many."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from uuid_utils.compat import uuid7

from chat.models import Message, ToolCall
from chat.services.turns import LONGEST_MESSAGE
from chat.sockets.consumer import COMMAND_BURST
from chat.wire.commands import parse_command
from chat.wire.events import CloseCode
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import (
    Event,
    is_turn,
    opened,
)
from tests.factories import make_tenant
from workspaces.errors import InvalidInput


async def test_every_command_on_anothers_rows_is_not_found(chat: Chat) -> None:
    """SEC-06, SEC-02: a foreign id and a missing id answer alike, for each command."""
    chat.model.call(("counting__destroy", {"what": "x"}))
    sent = await sync_to_async(chat.send)()
    await asyncio.to_thread(chat.watching.turn, "waiting_for_approval")
    call = (await sync_to_async(chat.calls)())[0]
    stranger = await sync_to_async(make_tenant)("strangers")
    colleagues = [(chat.tenant, "admin"), (chat.tenant, "auditor"), (stranger, "owner")]
    for tenant, role in colleagues:
        async with opened(tenant, role) as socket:
            for name, found, extra in (
                ("subscribe", {"conversation_id": str(chat.conversation.pk)}, {}),
                (
                    "send",
                    {"conversation_id": str(chat.conversation.pk)},
                    {"client_id": "x", "text": "y"},
                ),
                ("stop", {"turn_id": str(sent.turn.pk)}, {}),
                ("retry", {"turn_id": str(sent.turn.pk)}, {}),
                ("decide", {"tool_call_id": str(call.pk)}, {"decision": "approve"}),
            ):
                foreign = await socket.answer(type=name, **found, **extra)
                missing = await socket.answer(
                    type=name, **{key: str(uuid7()) for key in found}, **extra
                )
                assert foreign["type"] == "error", (name, role)
                assert foreign["code"] == "not_found"
                assert {**foreign, "ref": None} == {**missing, "ref": None}
    assert chat.server.calls == []
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace)
    assert await sync_to_async(rows.get)() == call


@pytest.mark.parametrize(
    "command",
    [
        {
            "type": "send",
            "conversation_id": str(uuid7()),
            "client_id": "x",
            "text": "y",
            "role": "tool",
        },
        {
            "type": "send",
            "conversation_id": str(uuid7()),
            "client_id": "x",
            "text": "y",
            "tool_calls": [],
        },
        {"type": "tool_call.changed", "tool_call": {}},
        {"type": "execute", "code": "x"},
        {"type": "decide", "tool_call_id": "nope", "decision": "approve"},
        {"type": "decide", "tool_call_id": str(uuid7()), "decision": "maybe"},
        {"type": "subscribe"},
        {},
        [],
        "text",
        7,
        None,
    ],
)
@pytest.mark.django_db(transaction=True)
async def test_nothing_but_our_commands_is_understood(command: Any) -> None:
    """SEC-61, SEC-86: clients cannot submit tool or assistant messages, or events."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=json.dumps(command))
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "invalid"
        await socket.answer(type="ping")
    assert await sync_to_async(Message.unscoped.count)() == 0


@pytest.mark.parametrize(
    ("command", "field", "words"),
    [
        ({"type": "nope"}, "type", "There is no such command."),
        ({"no": "type"}, "type", "Say which command this is."),
        ({"type": "subscribe"}, "conversation_id", "This field is missing."),
        ({"type": "subscribe", "conversation_id": "x"}, "conversation_id", "This is not an id."),
        ({"type": "ping", "more": 1}, "more", "There is no such field in this command."),
        ([], "command", "A frame holds one JSON object."),
    ],
)
def test_a_command_that_is_not_understood_is_told_by_its_field(
    command: object, field: str, words: str
) -> None:
    """REL-1572: in our own words."""
    with pytest.raises(InvalidInput) as refused:
        parse_command(command)
    assert refused.value.fields == {field: [words]}
    assert refused.value.message == f"{field}: {words}"


@pytest.mark.parametrize("letter", ["x", "ü", "語", "😀", "\n"])
async def test_the_longest_message_is_taken(chat: Chat, letter: str) -> None:
    """REL-1254: and one that is longer is told so, with the connection as it was."""
    chat.model.say("Good")
    words = "x" + letter * (LONGEST_MESSAGE - 2) + "x"
    command = {"type": "send", "conversation_id": str(chat.conversation.pk)}

    async def send(ref: str, text: str) -> Event:
        content = {**command, "client_id": ref, "ref": ref, "text": text}
        # As browsers write it.
        await socket.raw.send_to(text_data=json.dumps(content, ensure_ascii=False))
        return await socket.until(lambda event: event.get("ref") == ref)

    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=command["conversation_id"])
        too_long = await send("r1", words + "x")
        assert (too_long["type"], too_long["code"]) == ("error", "invalid")
        assert (await send("r2", words))["type"] == "accepted"
        if not any(is_turn("completed")(event) for event in socket.events):
            await socket.until(is_turn("completed"))
    assert await sync_to_async(Message.unscoped.filter(text=words).count)() == 1


@pytest.mark.django_db(transaction=True)
async def test_a_message_with_one_key_twice_is_refused() -> None:
    """SEC-77: as over REST; which of two values is meant is nobody's to guess."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data='{"type":"ping","type":"subscribe"}')
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "invalid"
        await socket.answer(type="ping")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("text", ["{nope", "x" * 600_000, "[" * 50_000, '"' + "ü" * 300_000 + '"'])
async def test_malformed_messages_close_the_socket(text: str) -> None:
    """SEC-77: a typed error, then 1008."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=text)
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["code"] == "malformed"
        assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE


@pytest.mark.django_db(transaction=True)
async def test_binary_messages_close_the_socket() -> None:
    """SEC-77: only text is understood."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(bytes_data=b"\x00\xff")
        assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE


@pytest.mark.django_db(transaction=True)
async def test_a_flood_of_messages_closes_the_socket() -> None:
    """SEC-77: a burst is allowed, a flood is not."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        sent = 0

        async def flood() -> None:
            # Without end: how many are too many depends on how quickly they are read.
            nonlocal sent
            while True:
                sent += 1
                await socket.raw.send_to(text_data='{"type":"ping"}')
                await asyncio.sleep(0)

        flooding = asyncio.create_task(flood())
        try:
            error = await socket.until(lambda e: e["type"] == "error")
            assert error["code"] == "rate_limited"
            assert await socket.close_code() == CloseCode.PROTOCOL_ABUSE
        finally:
            flooding.cancel()
        assert sent > COMMAND_BURST


@pytest.mark.django_db(transaction=True)
async def test_an_odd_reference_harms_nothing() -> None:
    """SEC-77: half a character in `ref` is replaced before it is sent back."""
    tenant = await sync_to_async(make_tenant)("acme")
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data='{"type":"nonsense","ref":"\\ud800"}')
        error = await socket.until(lambda e: e["type"] == "error")
        assert error["ref"] == "\ufffd"
        await socket.answer(type="ping")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", ['"nul \\u0000"', '"half \\ud800"', '{"\\u0000": 1}', "NaN"])
async def test_what_cannot_be_stored_is_a_typed_error(value: str) -> None:
    """SEC-77: in any field of any command, and before it reaches the database; the socket stays."""
    tenant = await sync_to_async(make_tenant)("acme")
    start = '{"type":"resolve","ref":"r","tool_call_id":"%s","resolution":"marked_done","note":'
    async with opened(tenant) as socket:
        await socket.raw.send_to(text_data=f"{start % uuid7()}{value}}}")
        error = await socket.until(lambda e: e["type"] == "error")
        assert (error["code"], error["ref"]) == ("invalid", "r")
        assert "cannot be stored" in error["message"]
        await socket.answer(type="ping")
