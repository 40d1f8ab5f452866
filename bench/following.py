"""A page that follows a conversation as the web app does: it comes back when its server goes, and says what it has."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from uuid_utils.compat import uuid7

from bench.serving import ORIGIN, Seat
from bench.web_socket import WebSocket

_LEAST_PAUSE, _MOST_PAUSE = 0.2, 1.0
"""Seconds until a page that lost its server tries again; spread, so that not all come at once."""
_OPENING_SECONDS = 60.0
ENDED = frozenset({"completed", "failed", "cancelled", "interrupted"})


class Page:
    """One page. Follows `docs/protocol.md`, "Follow a conversation" and "Resume after a gap"."""

    def __init__(self, seat: Seat, choose_port: Callable[[], int]) -> None:
        self.seat = seat
        self.seq: int | None = None
        self.title = ""
        self.texts: dict[str, str] = {}
        """Of each message, by its id."""
        self.turns: dict[str, str] = {}
        """The status of each turn, by its id."""
        self.healed = 0
        """How often something was missing, and was asked for again."""
        self.absences: list[float] = []
        """Seconds from each lost connection until the page had everything again."""
        self._choose_port = choose_port
        self._socket: WebSocket | None = None
        self._changed = asyncio.Event()
        self._has_all = False
        self._left_at: float | None = None
        self._is_streaming = False
        self._living: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open it, and stay until it is closed.

        Raises:
            TimeoutError: no server let it in.
        """
        self._living = asyncio.create_task(self._live())
        await self.until(lambda: self._has_all, _OPENING_SECONDS)

    async def close(self) -> None:
        """Close it."""
        if self._living is not None:
            self._living.cancel()
            with suppress(asyncio.CancelledError):
                await self._living
        if self._socket is not None:
            await self._socket.close()

    async def send(self, text: str) -> None:
        """Send a message."""
        await self.until(lambda: self._has_all, _OPENING_SECONDS)
        assert self._socket is not None
        self._socket.say(
            {
                "type": "send",
                "conversation_id": self.seat.conversation_id,
                "client_id": str(uuid7()),
                "text": text,
            }
        )

    async def until(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait until something is so.

        Raises:
            TimeoutError: it is not, after so many seconds.
        """
        async with asyncio.timeout(seconds):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_streaming(self, seconds: float) -> None:
        """Wait until an answer is on its way."""
        await self.until(lambda: self._is_streaming, seconds)

    async def until_answered(self, turns: int, seconds: float) -> None:
        """Wait until there are so many turns, and none is at work."""
        await self.until(
            lambda: len(self.turns) >= turns and ENDED.issuperset(self.turns.values()), seconds
        )

    @property
    def has_failed(self) -> bool:
        """Whether a turn ended otherwise than complete."""
        return any(status != "completed" for status in self.turns.values())

    async def _live(self) -> None:
        while True:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                self._socket = await WebSocket.open(
                    self._choose_port(),
                    f"/ws/w/{self.seat.slug}/",
                    cookie=self.seat.cookie,
                    origin=ORIGIN,
                )
                self._socket.listener = self._hear
                self._subscribe()
                await self._socket.until_closed()
            if self._left_at is None:
                self._left_at = time.monotonic()
            self._has_all = False
            await asyncio.sleep(random.uniform(_LEAST_PAUSE, _MOST_PAUSE))  # noqa: S311 - spreads pages

    def _subscribe(self) -> None:
        assert self._socket is not None
        self._socket.say(
            {
                "type": "subscribe",
                "conversation_id": self.seat.conversation_id,
                "seq": self.seq,
            }
        )

    def _hear(self, text: str) -> None:
        event: dict[str, Any] = json.loads(text)
        match event["type"]:
            case "text.delta":
                self._extend(event)
            case "current":
                self._come_back()
            case "snapshot":
                self._take_all(event)
                self._come_back()
            case _ if "seq" in event:
                self._apply(event)
        self._changed.set()

    def _come_back(self) -> None:
        self._has_all = True
        if self._left_at is not None:
            self.absences.append(time.monotonic() - self._left_at)
            self._left_at = None

    def _take_all(self, event: dict[str, Any]) -> None:
        self.seq = event["seq"]
        self.title = event["conversation"]["title"]
        self.texts = {row["id"]: row["text"] for row in event["messages"]}
        self.turns = {row["id"]: row["status"] for row in event["turns"]}

    def _apply(self, event: dict[str, Any]) -> None:
        if self.seq is None or event["seq"] <= self.seq:
            return
        if event["seq"] > self.seq + 1:
            self._ask_again()
            return
        self.seq = event["seq"]
        if row := event.get("message"):
            self.texts[row["id"]] = row["text"]
        if row := event.get("turn"):
            self.turns[row["id"]] = row["status"]
        if row := event.get("conversation"):
            self.title = row["title"]

    def _extend(self, event: dict[str, Any]) -> None:
        self._is_streaming = True
        has, offset = self.texts.get(event["message_id"], ""), event["offset"]
        if self.seq is None:
            return
        # The model says ASCII here, so a character is one UTF-16 code unit.
        if offset > len(has):
            self._ask_again()
        elif offset + len(event["text"]) > len(has):
            self.texts[event["message_id"]] = has[:offset] + event["text"]

    def _ask_again(self) -> None:
        self.healed += 1
        self.seq = None
        self._subscribe()


async def open_all(pages: Sequence[Page], at_once: int = 20) -> None:
    """Open them, a few at a time."""
    places = asyncio.Semaphore(at_once)

    async def open_one(page: Page) -> None:
        async with places:
            await page.open()

    await asyncio.gather(*(open_one(page) for page in pages))
