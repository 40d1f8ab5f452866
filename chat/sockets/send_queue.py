"""What waits to be sent to one page: bounded, whatever its reader does.

A server hands frames to the network without waiting, so only the page itself can say what has arrived. Now and then
a frame asks it (`check`), and it answers (`ack`); while too much is unheard of, nothing more is sent. What piles up
meanwhile is joined, then dropped for a fresh snapshot. A page that says nothing for long is given up.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence

from chat.sockets.frames import join_deltas
from chat.wire.events import Check, encode

MOST_WAITING = 512 * 1024
"""Characters that may wait here."""
MOST_UNHEARD = 512 * 1024
"""Characters that may be under way; one frame more is always let go, since a snapshot may be larger."""
JOIN_AT = 200
"""From so many waiting frames on, pieces of text are joined."""
CHECK_EVERY = 64 * 1024
CHECK_SECONDS = 20.0
STALLED_SECONDS = 45.0
"""A page that has not answered a check for so long is gone, or reads too slowly to be of use."""


_ANSWER = '{"type":"accepted"'
_NUMBER_BITS = 53
"""Browsers read larger numbers inexactly."""


class SendQueue:
    """Frames on their way to one page; used on one loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._frames: deque[str] = deque()
        self._waiting = 0
        # What snapshots that wait may take up beside the limit; they are as large as they are.
        self._allowance = 0
        self._sent = 0
        self._heard = 0
        self._checked_at = clock()
        self._checked_sent = 0
        # Number of a check that is not answered yet → (when it was sent, what had been sent by then), oldest first.
        self._open: dict[int, tuple[float, int]] = {}
        self._changed = asyncio.Event()

    def push(self, frame: str) -> bool:
        """Let a frame wait its turn. False: too much waits, and this one was not taken."""
        if self._waiting + len(frame) > MOST_WAITING + self._allowance and self._frames:
            return False
        self._append(frame)
        if len(self._frames) >= JOIN_AT and len(self._frames) % JOIN_AT == 0:
            self._join()
        self._changed.set()
        return True

    def let_in(self, frames: Sequence[str]) -> None:
        """Let a snapshot with what belongs to it wait its turn, whatever its size; what comes after it has room as ever."""
        for frame in frames:
            self._append(frame)
            self._allowance += len(frame)
        self._changed.set()

    def clear(self) -> None:
        """Forget what waits but the answers to commands: a fresh snapshot will say the rest."""
        self._frames = deque(frame for frame in self._frames if frame.startswith(_ANSWER))
        self._waiting = sum(len(frame) for frame in self._frames)
        self._allowance = 0

    @property
    def is_clear(self) -> bool:
        """Nothing waits, and the page has heard enough of what was sent."""
        return not self._frames and self._sent - self._heard <= MOST_UNHEARD

    def nudge(self) -> None:
        """There is something to do beside frames."""
        self._changed.set()

    async def wait(self) -> None:
        """Until something may be sent, was acknowledged, or somebody nudges."""
        await self._changed.wait()
        self._changed.clear()

    def take(self) -> str | None:
        """The next frame to send; None if there is none, or the page has not heard enough of the earlier ones."""
        if self._sent - self._heard > MOST_UNHEARD:
            return self._due_check()
        if not self._frames:
            return None
        check = self._due_check()
        if check is not None:
            return check
        frame = self._frames.popleft()
        self._waiting -= len(frame)
        if not self._frames:
            self._allowance = 0
        self._sent += len(frame)
        return frame

    def heard(self, number: int) -> None:
        """The page has read everything up to this check."""
        found = self._open.pop(number, None)
        if found is None:
            return
        self._open = {one: at for one, at in self._open.items() if at[1] > found[1]}
        self._heard = max(self._heard, found[1])
        self._changed.set()

    def check_now(self) -> str | None:
        """A frame that asks whether the page still reads, if it is time for one."""
        if self._clock() - self._checked_at < CHECK_SECONDS or self._open:
            return None
        return self._check()

    @property
    def is_stalled(self) -> bool:
        """Whether the page has been silent for too long."""
        oldest = min((at for at, _ in self._open.values()), default=None)
        return oldest is not None and self._clock() - oldest > STALLED_SECONDS

    def _append(self, frame: str) -> None:
        self._frames.append(frame)
        self._waiting += len(frame)

    def _due_check(self) -> str | None:
        return self._check() if self._sent - self._checked_sent >= CHECK_EVERY else None

    def _check(self) -> str:
        # Not the next number: who does not read could say it all the same, and have everything kept for it.
        number = secrets.randbits(_NUMBER_BITS)
        self._checked_at = self._clock()
        self._checked_sent = self._sent
        self._open[number] = (self._checked_at, self._sent)
        return encode(Check(number=number).as_json())

    def _join(self) -> None:
        self._frames = deque(join_deltas(self._frames))
        self._waiting = sum(len(frame) for frame in self._frames)
