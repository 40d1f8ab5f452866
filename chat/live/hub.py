"""From where things happen to who is watching, inside the process and across processes.

An event is encoded once and handed to every local watcher directly. Where a shared channel layer
exists (Redis), it also goes to the other processes; a message lost there is healed by its number.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol, cast
from uuid import UUID

from channels.layers import get_channel_layer
from uuid_utils.compat import uuid7

from chat.wire.events import ConversationEvent, RowEvent, encode
from workspaces.delivery.announcements import has_other_processes, send_to_group

PROCESS_ID = str(uuid7())
"""Tells a process its own messages from those of others on the channel layer."""


_ASK_SECONDS = 2.0

Frame = tuple[str, int | None]
"""An event as it goes over the wire, and its number if it has one."""


def encode_frame(event: ConversationEvent) -> Frame:
    """Encode an event once for all its watchers."""
    return encode(event.as_json()), event.seq if isinstance(event, RowEvent) else None


class Watcher(Protocol):
    """Somebody who follows a conversation; called on the loop it subscribed with."""

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """Take one encoded event, without waiting; `seq` is its number, if it has one."""


def conversation_group(conversation_id: UUID | str) -> str:
    """The channel-layer group of a conversation's watchers."""
    return f"conversation.{conversation_id}"


class Hub:
    """Watchers by conversation. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: defaultdict[UUID, dict[Watcher, asyncio.AbstractEventLoop]] = defaultdict(
            dict
        )

    def watch(
        self, conversation_id: UUID, watcher: Watcher, loop: asyncio.AbstractEventLoop
    ) -> None:
        with self._lock:
            self._watchers[conversation_id][watcher] = loop

    def unwatch(self, conversation_id: UUID, watcher: Watcher) -> None:
        with self._lock:
            watchers = self._watchers.get(conversation_id)
            if watchers is not None:
                watchers.pop(watcher, None)
                if not watchers:
                    del self._watchers[conversation_id]

    def publish(self, conversation_id: UUID, events: Sequence[ConversationEvent]) -> None:
        """Tell local watchers and, for row events, other processes."""
        frames = [encode_frame(event) for event in events]
        self.deliver(conversation_id, frames)
        self.send_across(conversation_id, frames)

    def publish_here(self, conversation_id: UUID, event: ConversationEvent) -> None:
        """Tell local watchers only."""
        self.deliver(conversation_id, [encode_frame(event)])

    def deliver(self, conversation_id: UUID, frames: Sequence[Frame]) -> None:
        """Hand encoded events to the local watchers."""
        with self._lock:
            watchers = list(self._watchers.get(conversation_id, {}).items())
        for watcher, loop in watchers:
            try:
                loop.call_soon_threadsafe(_offer_all, watcher, conversation_id, frames)
            except RuntimeError:  # its loop has closed
                self.unwatch(conversation_id, watcher)

    def send_across(self, conversation_id: UUID, frames: Sequence[Frame]) -> None:
        """Hand encoded events to the watchers in other processes."""
        if not has_other_processes():
            return
        message: dict[str, object] = {
            "type": "conversation.frames",
            "origin": PROCESS_ID,
            "conversation_id": str(conversation_id),
            "frames": list(frames),
        }
        send_to_group(conversation_group(conversation_id), message)


class _Shared(Protocol):
    """A layer of many processes (`workspaces.delivery.channel_layer`)."""

    async def count_elsewhere(self, groups: Collection[str]) -> dict[str, int]: ...


async def followed_elsewhere(conversation_ids: Collection[UUID]) -> set[UUID]:
    """Tell which of these somebody follows in another process: all of them, if the channel layer cannot tell."""
    groups = {conversation_group(one): one for one in conversation_ids}
    if not has_other_processes():
        return set()
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            counted = await cast("_Shared", get_channel_layer()).count_elsewhere(groups)
    except Exception:  # noqa: BLE001  whatever a layer raises
        return set(conversation_ids)
    return {groups[group] for group, count in counted.items() if count}


def _offer_all(watcher: Watcher, conversation_id: UUID, frames: Sequence[Frame]) -> None:
    for frame, seq in frames:
        watcher.offer(conversation_id, frame, seq)


hub = Hub()
