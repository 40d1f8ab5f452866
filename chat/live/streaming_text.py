"""What a message says and thinks while it streams, and the deltas that tell of it.

A delta goes out at once when the last one is older than the window, else it waits for the window
to end: joining costs no delay at reading speed. Other processes get joined pieces that reach back
to the text saved before last, so that whoever starts from the row finds the seam. They get none while
nobody follows there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from chat.live.hub import encode_frame, hub
from chat.wire.events import Delta, ReasoningDelta, TextDelta, utf16_length
from workspaces.delivery.announcements import has_other_processes

WINDOW_SECONDS = 0.025
ACROSS_WINDOW_SECONDS = 0.1

_live: dict[UUID, LiveText] = {}


class TextSoFar(NamedTuple):
    """All that a message holds so far."""

    text: str
    reasoning: str


def live_text_so_far(message_id: UUID) -> TextSoFar | None:
    """What a message says right now, if it streams in this process."""
    live = _live.get(message_id)
    return live.so_far if live is not None else None


def missed_deltas(conversation_id: UUID, message_id: UUID, known: TextSoFar) -> list[Delta]:
    """What has been said since this much was known, by a message that streams in this process."""
    live = _live.get(message_id)
    if live is None:
        return []
    now = live.so_far
    return [
        kind(conversation_id, message_id, utf16_length(old), new[len(old) :])
        for kind, old, new in (
            (ReasoningDelta, known.reasoning, now.reasoning),
            (TextDelta, known.text, now.text),
        )
        if len(new) > len(old)
    ]


class _Channel:
    """One of the two texts of a message."""

    __slots__ = (
        *("across_base", "across_offset", "kind"),
        *("pending", "pieces", "saved", "sent_length"),
    )

    def __init__(self, kind: type[Delta]) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.pending: list[str] = []
        self.sent_length = 0
        self.saved = ""
        self.across_base = ""
        self.across_offset = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def mark_saved(self, text: str) -> None:
        self.across_base, self.saved = self.saved, text
        self.across_offset = utf16_length(self.across_base)
        # Long answers are put together ten times a second; few pieces take no time.
        self.pieces = [self.text]


class LiveText:
    """One streaming message; used on one loop."""

    def __init__(
        self,
        conversation_id: UUID,
        message_id: UUID,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_ours` says whether the turn is surely still held here; nothing is told while it is not."""
        self._is_ours = is_ours
        self.conversation_id = conversation_id
        self.message_id = message_id
        self._answer = _Channel(TextDelta)
        self._thoughts = _Channel(ReasoningDelta)
        self._last_sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._across_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._goes_across = has_other_processes()
        _live[message_id] = self

    @property
    def text(self) -> str:
        """All that it has said so far."""
        return self._answer.text

    @property
    def so_far(self) -> TextSoFar:
        """The same, with what it has thought."""
        return TextSoFar(self._answer.text, self._thoughts.text)

    def append(self, piece: str) -> None:
        """Add what the model has just said."""
        self._add(self._answer, piece)

    def append_reasoning(self, piece: str) -> None:
        """Add what the model has just thought."""
        self._add(self._thoughts, piece)

    def _add(self, channel: _Channel, piece: str) -> None:
        if not piece:
            return
        channel.pieces.append(piece)
        channel.pending.append(piece)
        now = self._loop.time()
        if now - self._last_sent >= WINDOW_SECONDS:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._last_sent + WINDOW_SECONDS, self.flush)
        if self._goes_across and self._across_timer is None:
            self._across_timer = self._loop.call_later(ACROSS_WINDOW_SECONDS, self._flush_across)

    def flush(self) -> None:
        """Tell the local watchers what they have not heard."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_ours():
            return
        for channel in (self._thoughts, self._answer):
            if channel.pending:
                piece = "".join(channel.pending)
                channel.pending.clear()
                delta = channel.kind(
                    self.conversation_id, self.message_id, channel.sent_length, piece
                )
                channel.sent_length += utf16_length(piece)
                self._last_sent = self._loop.time()
                hub.publish_here(self.conversation_id, delta)

    def mark_saved(self, text_so_far: TextSoFar) -> None:
        """The row now holds this much; watchers elsewhere surely have what it held before."""
        self._answer.mark_saved(text_so_far.text)
        self._thoughts.mark_saved(text_so_far.reasoning)

    def go_across(self, *, is_followed: bool) -> None:
        """Tell other processes from now on or no longer; who has just come there hears what their row may lack."""
        if is_followed and not self._goes_across:
            self._flush_across()
        self._goes_across = is_followed

    def close(self) -> None:
        """The row tells the rest; nothing more comes from here."""
        for timer in (self._timer, self._across_timer):
            if timer is not None:
                timer.cancel()
        _live.pop(self.message_id, None)

    def _flush_across(self) -> None:
        self._across_timer = None
        if not self._is_ours():
            return
        frames = []
        for channel in (self._thoughts, self._answer):
            piece = channel.text[len(channel.across_base) :]
            if piece:
                delta = channel.kind(
                    self.conversation_id, self.message_id, channel.across_offset, piece
                )
                frames.append(encode_frame(delta))
        if frames:
            hub.send_across(self.conversation_id, frames)
