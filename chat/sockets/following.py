"""The conversations that a page follows: nothing missed, nothing out of order, and nothing piled up without end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from uuid import UUID

from chat.live.hub import hub
from chat.live.streaming_text import TextSoFar, missed_deltas
from chat.models import Conversation
from chat.snapshots import read_snapshot
from chat.sockets.send_queue import SendQueue
from chat.values import MessageStatus
from chat.wire.events import Current, encode
from workspaces.database import in_database
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)


class Following:
    """A hub's watcher that writes into a page's send queue; used on the loop that serves the page."""

    def __init__(self, queue: SendQueue) -> None:
        self._queue = queue
        # Conversation → number of the newest event told.
        self._sent_seqs: dict[UUID, int] = {}
        # Conversation → what has come while its snapshot is being read.
        self._held: dict[UUID, list[tuple[str, int]]] = {}
        # Conversation → the commands that its next snapshot answers.
        self._refs: dict[UUID, list[str]] = {}
        self.stale: set[UUID] = set()
        """Those that need a fresh snapshot, since something of them was not told."""

    def __contains__(self, conversation_id: UUID) -> bool:
        return conversation_id in self._sent_seqs

    def __len__(self) -> int:
        return len(self._sent_seqs)

    @property
    def conversation_ids(self) -> list[UUID]:
        return list(self._sent_seqs)

    def begin(self, conversation_id: UUID) -> None:
        """Watch before reading: what happens in between comes twice, and never not at all."""
        self._sent_seqs.setdefault(conversation_id, -1)
        hub.watch(conversation_id, self, asyncio.get_running_loop())

    def end(self, conversation_id: UUID) -> list[str]:
        """Follow it no more. Gives the commands that nothing will answer now."""
        self._sent_seqs.pop(conversation_id, None)
        self.stale.discard(conversation_id)
        hub.unwatch(conversation_id, self)
        return self._refs.pop(conversation_id, [])

    def end_all(self) -> None:
        for conversation_id in self.conversation_ids:
            self.end(conversation_id)

    def is_current(self, conversation_id: UUID, seq: int) -> None:
        """The page has everything up to this number."""
        self._sent_seqs[conversation_id] = seq

    def offer(self, conversation_id: UUID, frame: str, seq: int | None) -> None:
        """From the hub: one encoded event."""
        if conversation_id not in self._sent_seqs or conversation_id in self.stale:
            return
        held = self._held.get(conversation_id)
        if held is not None:
            # A snapshot is on its way: it holds the texts, and of the rows what comes before its number.
            if seq is not None:
                held.append((frame, seq))
            return
        if seq is not None:
            self._sent_seqs[conversation_id] = max(seq, self._sent_seqs[conversation_id])
        if not self._queue.push(frame):
            self._start_over()

    def note_missed(self, newest: Mapping[UUID, int], before: Mapping[UUID, int]) -> bool:
        """What rows say against what was told; what is only just committed is left to arrive by itself.

        Gives whether there is some of that.
        """
        is_on_its_way = False
        for conversation_id, seq in newest.items():
            if self._sent_seqs.get(conversation_id, seq) >= seq:
                continue
            if before.get(conversation_id) == seq:
                self.stale.add(conversation_id)
                self._queue.nudge()
            else:
                is_on_its_way = True
        return is_on_its_way

    def ask_later(self, conversation_id: UUID, ref: str | None) -> None:
        """Answer a command with a snapshot, once the page has read what waits for it."""
        if ref is not None:
            self._refs.setdefault(conversation_id, []).append(ref)
        self.stale.add(conversation_id)
        self._queue.nudge()

    async def heal(self, conversation: Conversation) -> list[str]:
        """Send a snapshot, which answers all commands that have waited for one.

        Gives those that nothing will answer now, since the page has closed it meanwhile.
        """
        refs = self._refs.pop(conversation.pk, [])
        try:
            is_sent = await self.send_snapshot(conversation, refs[0] if refs else None)
        except DomainError:
            self._refs.setdefault(conversation.pk, []).extend(refs)
            raise
        if not is_sent:
            return refs
        for ref in refs[1:]:
            seq = self._sent_seqs[conversation.pk]
            current = Current(ref=ref, conversation_id=conversation.pk, seq=seq)
            self._queue.push(encode(current.as_json()))
        return []

    async def send_snapshot(self, conversation: Conversation, ref: str | None = None) -> bool:
        """Send a snapshot, then what has happened while it was read. False: the page has closed it meanwhile."""
        held = self._held.setdefault(conversation.pk, [])
        try:
            # Encoded off the loop: a long conversation is megabytes.
            frame, seq, streaming = await in_database(_encoded_snapshot, conversation, ref)
        finally:
            self._held.pop(conversation.pk, None)
        if conversation.pk not in self._sent_seqs:
            return False
        self._sent_seqs[conversation.pk] = seq
        frames = [frame, *_since(conversation.pk, streaming)]
        for later, number in held:
            if number > seq:
                self._sent_seqs[conversation.pk] = number
                frames.append(later)
        self._queue.let_in(frames)
        return True

    def _start_over(self) -> None:
        """A slow reader is given fresh snapshots instead of an endless queue."""
        logger.warning("socket_reads_slowly", extra={"conversations": len(self._sent_seqs)})
        self._queue.clear()
        self.stale |= set(self._sent_seqs)
        self._queue.nudge()


def _encoded_snapshot(
    conversation: Conversation, ref: str | None
) -> tuple[str, int, dict[UUID, TextSoFar]]:
    """A snapshot as it goes over the wire, its number, and the texts that still stream."""
    snapshot = read_snapshot(conversation, ref)
    streaming = {
        UUID(message["id"]): TextSoFar(message["text"], message["reasoning"])
        for message in snapshot.messages
        if message["status"] == MessageStatus.STREAMING.value
    }
    return encode(snapshot.as_json()), snapshot.seq, streaming


def _since(conversation_id: UUID, streaming: Mapping[UUID, TextSoFar]) -> list[str]:
    """What has been said since the snapshot was read, by messages that stream in this process."""
    return [
        encode(delta.as_json())
        for message_id, known in streaming.items()
        for delta in missed_deltas(conversation_id, message_id, known)
    ]
