"""A turn followed as server-sent events: everything once, in order, however often the follower comes back."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import pytest
from channels.db import database_sync_to_async as sync_to_async
from django.test import AsyncClient

from chat.feed import streaming
from chat.feed.access import may_follow
from chat.feed.feed_state import FeedState
from chat.feed.progress import FeedEvent, Position, ProgressCounts, tell
from chat.feed.streaming import check_room, follow_turn
from chat.services.approvals import decide
from chat.values import Decision
from tests.chat.conftest import Chat
from tests.patience import PATIENCE
from workspaces.errors import InvalidInput, RateLimited
from workspaces.models import Membership
from workspaces.people.services import remove_member

TURN = "t"
Row = dict[str, Any]


def message(step: int, text: str, status: str = "complete") -> Row:
    return {
        "id": f"m{step}",
        "turn_id": TURN,
        "role": "assistant",
        "step": step,
        "text": text,
        "status": status,
    }


def call(place: int, status: str, step: int = 0) -> Row:
    return {
        "id": f"c{step}{place}",
        "message_id": f"m{step}",
        "position": place,
        "status": status,
    }


def turn(status: str, error: Row | None = None) -> Row:
    return {"id": TURN, "status": status, "error": error}


def a_turn() -> list[tuple[str, Row]]:
    """Every change of a turn's rows, as (table, row), with a step that begins anew after a crash."""
    story: list[tuple[str, Row]] = [("turns", turn("running"))]
    begun = ("", "Lo", "Lost ", "", "Let me ")
    story += [("messages", message(0, text, "streaming")) for text in begun]
    story.append(("messages", message(0, "Let me 🌱 look.")))
    for status in ("queued", "waiting_for_approval", "queued", "running"):
        story += [("tool_calls", call(place, status)) for place in (0, 1)]
    story.append(("tool_calls", call(0, "outcome_unknown")))
    story.append(("tool_calls", call(1, "succeeded")))
    story.append(("tool_calls", call(0, "repeated")))
    story += [("tool_calls", call(2, status)) for status in ("queued", "running", "failed")]
    story += [("messages", message(1, text, "streaming")) for text in ("", "Here", "Here it")]
    story.append(("messages", message(1, "Here it is.")))
    story.append(("turns", turn("failed", {"code": "x", "message": "Sorry."})))
    return story


def feed_state_of(story: Iterable[tuple[str, Row]]) -> FeedState:
    state = FeedState()
    state.is_stale = False
    for table, row in story:
        getattr(state, table)[row["id"]] = row
    return state


def heard(events: Iterable[FeedEvent]) -> list[Any]:
    """What a follower has in the end: texts put together, everything else as it came."""
    texts: dict[str, str] = {}
    listed: list[Any] = []
    for event in events:
        if event.name == "content":
            before = "" if event.data["replaces"] else texts.get(event.data["message_id"], "")
            texts[event.data["message_id"]] = before + event.data["text"]
        else:
            row = event.data.get("tool_call") or event.data
            listed.append((event.name, row.get("id")))
    return [texts, listed]


def follow(
    story: list[tuple[str, Row]], looks: Iterable[int], dice: random.Random
) -> list[FeedEvent]:
    """Look at the story after some of its changes; at times break off after any event and come back with its id."""
    position, events = Position(), []
    for seen in looks:
        state = feed_state_of(story[:seen])
        again = True
        while again:
            again = False
            for event in tell(state, TURN, position):
                events.append(event)
                position = event.position
                if dice.random() < 0.3:
                    position = Position.parse(str(position))
                    again = True
                    break
    return events


def test_whoever_comes_back_misses_nothing_and_hears_nothing_twice() -> None:
    """REL-13, REL-21: for a thousand random ways to look and to break off, the same as without."""
    story = a_turn()
    whole = heard(follow(story, range(1, len(story) + 1), random.Random(0)))
    assert whole[0] == {"m0": "Let me 🌱 look.", "m1": "Here it is."}
    assert [name for name, _ in whole[1]].count("done") == 1
    for seed in range(1000):
        dice = random.Random(seed)
        looks = sorted({*dice.sample(range(1, len(story)), dice.randint(0, 20)), len(story)})
        texts, events = heard(follow(story, looks, dice))
        assert texts == whole[0], seed
        assert len(events) == len(set(events)), seed
        # Whoever looks seldom does not hear of questions that were answered meanwhile; all else they do.
        asked = ("approval", "outcome_unknown")
        assert {one for one in events if one[0] not in asked} == {
            one for one in whole[1] if one[0] not in asked
        }, seed
        assert [name for name, _ in events][-2:] == ["error", "done"], seed


def test_whoever_heard_the_end_hears_what_a_retried_turn_adds() -> None:
    """REL-2753: and its new end, but nothing of before."""
    story = a_turn()
    ended = list(tell(feed_state_of(story), TURN, Position()))[-1].position
    again = [*story, ("turns", turn("running")), ("messages", message(1, "Here it is. More."))]
    position = Position.parse(str(ended)).before_end()
    (more,) = tell(feed_state_of(again), TURN, position)
    assert (more.name, more.data["text"]) == ("content", " More.")
    state = feed_state_of([*again, ("turns", turn("completed"))])
    assert [event.name for event in tell(state, TURN, more.position)] == ["done"]


def test_the_ids_that_are_given_are_understood() -> None:
    """REL-13: of every kind: with calls, with questions, with an error told, and at the end."""
    calls = (ProgressCounts(9), ProgressCounts(3, 12), ProgressCounts())
    for end in ("", "?", "!"):
        for ids in ((), calls[:1], calls):
            position = Position(2, 7, 0xAB, ids, end)
            assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text", ["", "x", "0.0.0.", "1.2.zzzzzzzz.", "0.0.00000000.f,", "9" * 3000, "0.0.00000000.1!!"]
)
def test_an_id_that_is_none_of_ours_is_told_so(text: str) -> None:
    """SEC-76: or read as what it says; never a fault of ours."""
    try:
        position = Position.parse(text)
    except InvalidInput:
        return
    assert str(position) == text.replace(",", "") or list(
        tell(feed_state_of(a_turn()), TURN, position)
    )


async def events_of(
    chat: Chat, turn: Any, position: Position | None = None
) -> list[tuple[str, Any]]:
    """Follow a turn to its end."""
    pieces = follow_turn(
        turn,
        position or Position(),
        person_id=chat.tenant.member.pk,
        may_stay=lambda: may_follow(chat.actor, turn, None) or True,
    )
    found = []
    async with asyncio.timeout(PATIENCE):
        async for piece in pieces:
            fields = dict(line.split(": ", 1) for line in piece.strip().split("\n") if ": " in line)
            if "event" in fields:
                data = {**json.loads(fields["data"]), "event_id": fields.get("id", "")}
                found.append((fields["event"], data))
    return found


async def test_a_turn_is_followed_live_to_its_end(chat: Chat) -> None:
    """The same rows as the socket tells, also for whoever comes when all is over."""
    hold = threading.Event()
    chat.model.call(("counting__plain", {"text": "boom"}), text="Let me see.")
    chat.model.say("all done now", hold=hold)
    sent = await sync_to_async(chat.send)()
    following = asyncio.create_task(events_of(chat, sent.turn))
    await sync_to_async(chat.watching.turn)("waiting_for_approval")
    waiting = (await sync_to_async(chat.calls)())[0]
    await sync_to_async(decide)(call=waiting, decision=Decision.APPROVED, actor=chat.actor)
    await sync_to_async(chat.watching.until)(
        lambda e: e["type"] == "text.delta" and e["text"] == "all"
    )
    hold.set()
    events = await following
    names = [name for name, _ in events if name != "content"]
    assert names == ["tool_call", "approval", "tool_result", "done"]
    text = "".join(data["text"] for name, data in events if name == "content")
    assert text == "Let me see.all done now"
    late = await events_of(chat, sent.turn)
    assert [name for name, _ in late] == ["content", "tool_call", "tool_result", "content", "done"]
    assert streaming._open == {}
    # REL-2753: an `EventSource` comes back by itself, unless it is answered with 204.
    client = AsyncClient()
    await client.aforce_login(chat.tenant.member)
    for (_name, data), status in zip(late[-2:], (200, 204), strict=True):
        answer = await client.get(
            f"/api/turns/{sent.turn.pk}/events/",
            headers={"X-Workspace": chat.tenant.workspace.slug, "Last-Event-ID": data["event_id"]},
        )
        assert answer.status_code == status


def remove(chat: Chat) -> None:
    rows = Membership.objects.for_workspace(chat.tenant.workspace)
    remove_member(membership=rows.get(user=chat.tenant.member), actor=chat.tenant.actor("owner"))


async def test_a_follower_who_is_removed_hears_no_more(chat: Chat) -> None:
    """SEC-14: within five seconds, and nothing of what is said afterwards."""
    hold = threading.Event()
    chat.model.say("before after", hold=hold)
    sent = await sync_to_async(chat.send)()
    session = (await sync_to_async(chat.tenant.client)("member")).session.session_key
    pieces = follow_turn(
        sent.turn,
        Position(),
        person_id=chat.tenant.member.pk,
        may_stay=lambda: may_follow(chat.actor, sent.turn, session),
    )
    text = ""
    async with asyncio.timeout(PATIENCE):
        async for piece in pieces:
            text += piece
            if "before" in text:
                await sync_to_async(remove)(chat)
                break
        async for piece in pieces:
            text += piece
    hold.set()
    assert "forbidden" in text


def test_streams_are_counted_for_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-49: one person's streams do not use up everybody's."""
    person, other = uuid4(), uuid4()
    monkeypatch.setitem(streaming._open, person, streaming.MOST_OF_A_PERSON)
    with pytest.raises(RateLimited):
        check_room(person)
    check_room(other)
