"""The text of a message while it streams, and the deltas that tell of it.

A delta goes out at once when the last one is older than the window, else it waits for the window
to end: joining costs no delay at reading speed. Other processes get joined pieces that reach back
to the text saved before last, so that whoever starts from the row finds the seam.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from chat.events import TextDelta, utf16_length
from chat.hub import encode_frame, has_other_processes, hub

WINDOW_SECONDS = 0.025
ACROSS_WINDOW_SECONDS = 0.1

_live: dict[UUID, LiveText] = {}


def live_text(message_id: UUID) -> str | None:
    """What a message says right now, if it streams in this process."""
    live = _live.get(message_id)
    return live.text if live is not None else None


class LiveText:
    """One streaming message; used on one loop."""

    def __init__(self, conversation_id: UUID, message_id: UUID) -> None:
        self.conversation_id = conversation_id
        self.message_id = message_id
        self._pieces: list[str] = []
        self._pending: list[str] = []
        self._sent_length = 0
        self._saved = ""
        self._across_base = ""
        self._last_sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._across_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._goes_across = has_other_processes()
        _live[message_id] = self

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self._pieces)

    def append(self, piece: str) -> None:
        """Add what the model has just said."""
        if not piece:
            return
        self._pieces.append(piece)
        self._pending.append(piece)
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
        if not self._pending:
            return
        piece = "".join(self._pending)
        self._pending.clear()
        delta = TextDelta(self.conversation_id, self.message_id, self._sent_length, piece)
        self._sent_length += utf16_length(piece)
        self._last_sent = self._loop.time()
        hub.publish_here(self.conversation_id, delta)

    def mark_saved(self, text: str) -> None:
        """The row now holds this much; watchers elsewhere surely have what it held before."""
        self._across_base = self._saved
        self._saved = text

    def close(self) -> None:
        """The row tells the rest; nothing more comes from here."""
        for timer in (self._timer, self._across_timer):
            if timer is not None:
                timer.cancel()
        _live.pop(self.message_id, None)

    def _flush_across(self) -> None:
        self._across_timer = None
        piece = self.text[len(self._across_base) :]
        if piece:
            offset = utf16_length(self._across_base)
            delta = TextDelta(self.conversation_id, self.message_id, offset, piece)
            hub.send_across(self.conversation_id, [encode_frame(delta)])
