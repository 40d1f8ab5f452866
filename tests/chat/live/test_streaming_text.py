"""What is told of a message while it streams: what it says and what it thinks, each with its own offsets."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from uuid import UUID

from uuid_utils.compat import uuid7

from chat.live import streaming_text as live_module
from chat.live.hub import hub
from chat.live.streaming_text import LiveText, TextSoFar, live_text_so_far, missed_deltas

PIECES = ["Hm ", "🌱", "grüß", " ", "\n", "word ", "東京"]


class Page:
    """Follows a message as a page does: it counts in UTF-16 units, and knows a gap when it sees one."""

    def __init__(self, text: str = "", reasoning: str = "") -> None:
        self.texts = {"text.delta": text, "reasoning.delta": reasoning}
        self.has_gap = False

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """From the hub."""
        self.take(json.loads(frame))

    def take(self, event: dict[str, Any]) -> None:
        known = self.texts[event["type"]].encode("utf-16-le")
        piece = event["text"].encode("utf-16-le")
        at = event["offset"] * 2
        self.has_gap |= at > len(known)
        fresh = piece[len(known) - at :] if at <= len(known) else b""
        self.texts[event["type"]] = (known + fresh).decode("utf-16-le")

    @property
    def seen(self) -> TextSoFar:
        return TextSoFar(self.texts["text.delta"], self.texts["reasoning.delta"])


async def test_a_page_sees_what_was_said_and_thought_wherever_it_comes_in() -> None:
    """REL-13: from the first delta, or from a snapshot and what it missed; the two never mix."""
    chosen = random.Random(7)
    for _ in range(20):
        conversation, message = uuid7(), uuid7()
        live = LiveText(conversation, message)
        page, late = Page(), None
        hub.watch(conversation, page, asyncio.get_running_loop())
        text, thought = "", ""
        for number in range(30):
            piece = chosen.choice(PIECES)
            if chosen.random() < 0.4:
                live.append_reasoning(piece)
                thought += piece
            else:
                live.append(piece)
                text += piece
            if chosen.random() < 0.3:
                live.flush()
            if number == 10:
                late = Page(*(live_text_so_far(message) or ("", "")))
                hub.watch(conversation, late, asyncio.get_running_loop())
        old = Page(text[:3], thought[:2])
        for delta in missed_deltas(conversation, message, old.seen):
            old.take(delta.as_json())
        live.flush()
        await asyncio.sleep(0)
        assert late is not None
        for one in (page, late, old):
            assert one.seen == TextSoFar(text, thought)
            assert not one.has_gap
        live.close()
        assert live_text_so_far(message) is None
        assert missed_deltas(conversation, message, TextSoFar("", "")) == []


@contextmanager
def other_processes() -> Iterator[list[dict[str, Any]]]:
    """Collect what goes to other processes, each piece at once."""
    sent: list[dict[str, Any]] = []

    def across(conversation_id: UUID, frames: list[tuple[str, int | None]]) -> None:
        sent.extend(json.loads(frame) for frame, _ in frames)

    with (
        patch.object(live_module, "has_other_processes", lambda: True),
        patch.object(live_module, "ACROSS_WINDOW_SECONDS", 0.0),
        patch.object(hub, "send_across", across),
    ):
        yield sent


async def test_other_processes_are_told_from_what_their_row_holds() -> None:
    """REL-13: joined pieces reach back to the state saved before last, for each of the two."""
    conversation, message = uuid7(), uuid7()
    with other_processes() as sent:
        live = LiveText(conversation, message)
        live.append_reasoning("Hm 🌱")
        live.append("One")
        first = live.so_far
        live.mark_saved(first)
        live.append(" two")
        live.mark_saved(live.so_far)
        live.append(" three")
        await asyncio.sleep(0.01)
        live.close()
    page = Page(first.text, first.reasoning)
    for event in sent:
        page.take(event)
    assert page.seen == TextSoFar("One two three", "Hm 🌱")
    assert not page.has_gap
    assert sent[-1]["offset"] == 3


async def test_nothing_goes_across_while_nobody_follows_there() -> None:
    """REL-1453: whoever comes reads the row, and is told what it lacks in the round after; the rest follows."""
    with other_processes() as sent:
        live = LiveText(uuid7(), uuid7())
        live.go_across(is_followed=False)
        live.append("One 🌱")
        live.mark_saved(live.so_far)
        live.go_across(is_followed=False)
        row = live.so_far  # what somebody reads who comes now
        live.append(" two")
        await asyncio.sleep(0.01)
        assert not sent
        live.mark_saved(live.so_far)
        live.append(" three")
        live.go_across(is_followed=True)
        live.append(" four")
        await asyncio.sleep(0.01)
        live.close()
    page = Page(*row)
    for event in sent:
        page.take(event)
    assert page.seen.text == "One 🌱 two three four"
    assert not page.has_gap


async def test_a_holder_that_is_not_sure_of_its_turn_tells_nothing() -> None:
    """REL-03: one that was paused past its lease is silent, and goes on where it was if the turn is still its own."""
    conversation, message = uuid7(), uuid7()
    is_ours = False
    live = LiveText(conversation, message, lambda: is_ours)
    page = Page()
    hub.watch(conversation, page, asyncio.get_running_loop())
    live.append("One")
    live.append_reasoning("Hm")
    live.flush()
    await asyncio.sleep(0)
    assert page.seen == TextSoFar("", "")
    is_ours = True
    live.append(" two")
    live.flush()
    await asyncio.sleep(0)
    live.close()
    assert page.seen == TextSoFar("One two", "Hm")
    assert not page.has_gap
