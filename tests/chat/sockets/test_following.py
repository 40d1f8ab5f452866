"""What a page reads: snapshots and events, and that nothing is missed or told twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.layers import get_channel_layer
from redis.exceptions import ConnectionError as RedisConnectionError

from chat.live.hub import hub
from chat.models import Message
from chat.services.conversations import delete_conversation, restore_conversation
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import (
    Event,
    is_turn,
    opened,
)


async def test_a_deleted_chat_is_not_there(chat: Chat) -> None:
    """SEC-600: it is neither read nor gone on with, also by a page that was open before, until it is restored."""
    row, actor = chat.conversation, chat.actor
    of_chat = {"conversation_id": str(row.pk)}
    chat.model.say("Good")
    async with opened(chat.tenant) as socket:
        assert (await socket.answer(type="subscribe", **of_chat))["type"] == "snapshot"
        await sync_to_async(delete_conversation)(conversation=row, actor=actor)
        for command in (
            {"type": "subscribe", **of_chat},
            {"type": "send", **of_chat, "client_id": "c1", "text": "hi"},
            {"type": "seen", **of_chat, "until": "2026-11-21T08:00:00Z"},
        ):
            answer = await socket.answer(**command)
            assert (answer["type"], answer["code"]) == ("error", "not_found"), command
        await sync_to_async(row.refresh_from_db)()
        await sync_to_async(restore_conversation)(conversation=row, actor=actor)
        assert (await socket.answer(type="subscribe", **of_chat))["type"] == "snapshot"
    assert await sync_to_async(Message.unscoped.count)() == 0


async def test_a_turn_over_the_socket(chat: Chat) -> None:
    """Ours: subscribe, send, watch it stream; what was told equals a fresh snapshot."""
    chat.model.say("Good morning to you")
    async with opened(chat.tenant) as socket:
        snapshot = await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        assert snapshot["type"] == "snapshot"
        accepted = await socket.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c1", text="hi"
        )
        again = await socket.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c1", text="hi"
        )
        assert (accepted["message_id"], accepted["turn_id"]) == (
            again["message_id"],
            again["turn_id"],
        )
        if not any(is_turn("completed")(event) for event in socket.events):
            await socket.until(is_turn("completed"))
        fresh = await sync_to_async(chat.snapshot)()
        await socket.caught_up(fresh["seq"])
        numbers = [e["seq"] for e in socket.events if "seq" in e and e["type"] != "snapshot"]
        assert numbers == list(range(snapshot["seq"] + 1, fresh["seq"] + 1))
        assert replay(snapshot, socket.events) == {**fresh, "ref": None}


def replay(snapshot: Event, events: list[Event]) -> Event:
    """What a page shows: the snapshot with every later event applied."""
    state = {**snapshot, "ref": None}
    lists = {"message": "messages", "turn": "turns", "tool_call": "tool_calls"}
    for event in events:
        if "seq" not in event or event["type"] in ("snapshot", "current"):
            continue
        if event["seq"] <= state["seq"]:
            continue
        assert event["seq"] == state["seq"] + 1, "a gap"
        state["seq"] = event["seq"]
        if "conversation" in event:
            state["conversation"] = event["conversation"]
        for kind, name in lists.items():
            if kind in event:
                rows = {row["id"]: row for row in state[name]}
                state[name] = list({**rows, event[kind]["id"]: event[kind]}.values())
    return state


async def test_snapshot_and_later_events_give_a_fresh_snapshot_whenever_one_joins(
    chat: Chat,
) -> None:
    """REL-13, REL-14: pages that join at any moment of a turn with approval all end up the same."""
    chat.model.call(("counting__echo", {"text": "a"}), ("counting__destroy", {"what": "b"}))
    chat.model.say("All is done now")
    async with opened(chat.tenant) as first:
        begin = await first.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        await first.answer(
            type="send", conversation_id=str(chat.conversation.pk), client_id="c", text="go"
        )
        if not any(is_turn("waiting_for_approval")(event) for event in first.events):
            await first.until(is_turn("waiting_for_approval"))
        async with opened(chat.tenant) as second:
            middle = await second.answer(
                type="subscribe", conversation_id=str(chat.conversation.pk)
            )
            waiting = [c for c in middle["tool_calls"] if c["status"] == "waiting_for_approval"]
            assert waiting[0]["approval"]["decision"] is None
            assert waiting[0]["input_schema"] is not None
            await second.answer(
                type="decide", tool_call_id=waiting[0]["id"], decision="approve", arguments=None
            )
            if not any(is_turn("completed")(event) for event in second.events):
                await second.until(is_turn("completed"))
            await first.until(is_turn("completed"))
            fresh = {**(await sync_to_async(chat.snapshot)()), "ref": None}
            for socket in (first, second):
                await socket.caught_up(fresh["seq"])
            assert replay(begin, first.events) == fresh
            assert replay(middle, second.events) == fresh
    assert chat.server.names() == ["echo", "destroy"]


async def test_a_page_that_returns_in_mid_stream_sees_the_text_so_far(chat: Chat) -> None:
    """REL-13, REL-22: snapshot with the partial text, then deltas that join without a seam."""
    hold = threading.Event()
    chat.model.say("The quick brown fox jumps", hold=hold)
    sent = await sync_to_async(chat.send)()
    await asyncio.to_thread(
        chat.watching.until, lambda e: e["type"] == "text.delta" and "fox" in chat.watching.text()
    )
    async with opened(chat.tenant) as socket:
        snapshot = await socket.answer(
            type="subscribe", conversation_id=str(chat.conversation.pk), seq=10_000
        )
        partial = snapshot["messages"][-1]["text"]
        assert partial == "The quick brown fox"
        hold.set()
        await socket.until(is_turn("completed"))
        text = partial
        for event in socket.events:
            if event["type"] == "text.delta":
                assert event["offset"] <= len(text)
                text = text[: event["offset"]] + event["text"]
        assert text == "The quick brown fox jumps"
    assert (await sync_to_async(chat.reload)(sent.turn)).status == "completed"


async def test_a_page_that_is_up_to_date_gets_no_snapshot(chat: Chat) -> None:
    """Ours: a reconnect after which nothing has happened costs one line."""
    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        again = await socket.answer(
            type="subscribe", conversation_id=str(chat.conversation.pk), seq=0
        )
        assert again["type"] == "current"


async def test_what_the_nudges_lost_is_healed(chat: Chat) -> None:
    """REL-15: with every message to the socket lost, the page is right again within five seconds."""
    async with opened(chat.tenant) as socket:
        await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        watchers = hub._watchers.pop(chat.conversation.pk)
        chat.model.say("nobody hears this")
        sent = await sync_to_async(chat.send)()
        assert watchers
        healed = await socket.until(
            lambda e: e["type"] == "snapshot" and len(e["messages"]) == 2, seconds=12
        )
        assert healed["turns"][0]["id"] == str(sent.turn.pk)


async def test_a_page_opens_and_follows_a_chat_while_the_layer_is_away(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1424, REL-23: groups cannot be joined, and Redis says so by errors of its own. Rows tell what is missed."""

    async def away(*_args: Any) -> None:
        raise RedisConnectionError("Error 111 connecting to redis:6379. Connection refused.")

    for name in ("group_add", "group_discard"):
        monkeypatch.setattr(type(get_channel_layer()), name, away, raising=False)
    place = {"conversation_id": str(chat.conversation.pk)}
    async with opened(chat.tenant) as socket:
        answer = await socket.answer(type="subscribe", **place)
        assert answer["type"] == "snapshot"
        answer = await socket.answer(type="unsubscribe", **place)
        assert answer["type"] == "accepted"
