"""Following a turn live: what the hub and the other processes tell, healed from the rows, as server-sent events.

A server writes to the network without waiting for its reader, so a stream ends by itself after a bounded size or
time; whoever still listens comes back with the last id and misses nothing. Source of the format: WHATWG HTML,
"Server-sent events".
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from typing import Final
from uuid import UUID

from channels.layers import get_channel_layer
from django.utils.translation import gettext as _

from chat.engine import runner
from chat.feed.feed_state import FeedState
from chat.feed.progress import FeedEvent, Position, tell
from chat.live.hub import PROCESS_ID, conversation_group, hub
from chat.models import Conversation, Turn
from chat.snapshots import read_turn
from chat.wire.events import encode
from workspaces.database import in_database
from workspaces.delivery.announcements import has_other_processes
from workspaces.errors import RateLimited
from workspaces.process.shutdown import is_shutting_down

logger = logging.getLogger(__name__)

MOST_CHARACTERS = 8 * 1024 * 1024
MOST_SECONDS = 30 * 60.0
MOST_WAITING = 1_000
LOOK_SECONDS = 2.0
"""How often rights are asked for, and rows looked at for what was not told."""
KEEP_ALIVE_SECONDS = 15.0
MOST_OF_A_PERSON = 20
MOST_OF_ALL = 500

_open: Counter[UUID] = Counter()


class _Listening:
    """A hub's watcher with a bounded memory: what does not fit is read from the rows instead."""

    def __init__(self) -> None:
        self._frames: deque[str] = deque()
        self._has_news = asyncio.Event()
        self._has_overflowed = False

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """From the hub, or from another process."""
        if len(self._frames) >= MOST_WAITING:
            self._frames.clear()
            self._has_overflowed = True
        if not self._has_overflowed:
            self._frames.append(frame)
        self._has_news.set()

    async def wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_news.wait()

    def apply_to(self, state: FeedState) -> None:
        self._has_news.clear()
        state.is_stale |= self._has_overflowed
        self._has_overflowed = False
        while self._frames:
            state.apply(json.loads(self._frames.popleft()))


def check_room(person_id: UUID) -> None:
    """Raise RateLimited if this person, or this process, follows too many turns already."""
    if _open[person_id] >= MOST_OF_A_PERSON or _open.total() >= MOST_OF_ALL:
        raise RateLimited(_("Too many streams are open. Close one first."))


def has_heard_all(turn: Turn, position: Position) -> bool:
    """Whether whoever comes back from there was told of the turn's end, and nothing has come since."""
    if not position.is_done:
        return False
    snapshot = read_turn(turn)
    if snapshot is None:
        return False
    state = FeedState()
    state.apply(snapshot)
    names = {event.name for event in tell(state, str(turn.pk), position.before_end())}
    return "done" in names and names <= {"error", "done"}


async def follow_turn(
    turn: Turn, position: Position, *, person_id: UUID, may_stay: Callable[[], bool]
) -> AsyncIterator[str]:
    """The turn's events from a position on, until it has ended.

    Args:
        may_stay: whether the person still has the rights that they came with; reads the database.
    """
    _open[person_id] += 1
    listening = _Listening()
    hub.watch(turn.conversation_id, listening, asyncio.get_running_loop())
    relay = asyncio.create_task(_relay(turn.conversation_id, listening))
    try:
        async for piece in _pieces(turn, position, listening, may_stay):
            yield piece
    finally:
        relay.cancel()
        hub.unwatch(turn.conversation_id, listening)
        _open[person_id] -= 1
        if not _open[person_id]:
            del _open[person_id]


async def _pieces(
    turn: Turn, position: Position, listening: _Listening, may_stay: Callable[[], bool]
) -> AsyncIterator[str]:
    state = FeedState()
    started = spoken = looked = time.monotonic()
    size = 0
    position = position.before_end()
    yield "retry: 1000\n\n"
    while size < MOST_CHARACTERS and time.monotonic() - started < MOST_SECONDS:
        if is_shutting_down() and turn.conversation_id not in runner.conversations():
            return  # whoever still listens comes back, to another process
        now = time.monotonic()
        if now - looked >= LOOK_SECONDS:
            looked = now
            if not await in_database(may_stay):
                yield _FORBIDDEN
                return
            state.is_stale |= await in_database(_newest, turn) > state.seq
        if state.is_stale:
            snapshot = await in_database(read_turn, turn)
            if snapshot is None:
                yield _encode("error", {"code": "not_found", "message": "It has been deleted."})
                return
            state.apply(snapshot)
        listening.apply_to(state)
        for event in tell(state, str(turn.pk), position):
            # A turn that ends because the person has left is not theirs to hear of.
            if event.name == "done" and not await in_database(may_stay):
                yield _FORBIDDEN
                return
            position = event.position
            piece = _encode_event(event)
            size += len(piece)
            spoken = now
            yield piece
            if event.name == "done":
                return
        if now - spoken >= KEEP_ALIVE_SECONDS:
            spoken = now
            yield ": still here\n\n"
        if not state.is_stale:
            await listening.wait(LOOK_SECONDS)


async def _relay(conversation_id: UUID, listening: _Listening) -> None:
    """Hand on what other processes tell by the channel layer; a message lost there is healed from the rows."""
    layer = get_channel_layer()
    if layer is None or not has_other_processes():
        return
    group, channel = conversation_group(conversation_id), None
    try:
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        while True:
            message = await layer.receive(channel)
            if message.get("origin") != PROCESS_ID:
                for frame, seq in message.get("frames", ()):
                    listening.offer(conversation_id, frame, seq)
    except Exception:  # whatever a layer raises: Redis' own errors are no OSError
        logger.info("feed_without_layer", exc_info=True)
    finally:
        if channel is not None:
            with contextlib.suppress(Exception):
                await layer.group_discard(group, channel)


def _newest(turn: Turn) -> int:
    rows = Conversation.objects.for_workspace(turn.workspace_id).filter(pk=turn.conversation_id)
    # None: it has been deleted, which reading it again will tell.
    newest = rows.values_list("event_seq", flat=True).first()
    return newest if newest is not None else 2**63


def _encode_event(event: FeedEvent) -> str:
    return _encode(event.name, event.data, event_id=str(event.position))


def _encode(name: str, data: object, *, event_id: str = "") -> str:
    head = f"id: {event_id}\n" if event_id else ""
    return f"event: {name}\n{head}data: {encode(data)}\n\n"  # type: ignore[arg-type]  # any JSON


_FORBIDDEN: Final = _encode("error", {"code": "forbidden", "message": "You may not follow this."})
