"""Who talks in a chaos run, for how long they wait, and what they saw."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
from uuid_utils.compat import uuid7

from tests.chaos.installation import Installation
from tests.chaos.scenery import DESTROY, MERGE, READ, Plan

FINAL = {"completed", "failed", "cancelled", "interrupted"}
PATIENCE = 45.0
"""Seconds that somebody waits for anything amid the trouble."""
MOST_SECONDS_OF_PEACE = 240.0
"""After it, what has not come in peace either never comes."""
SHAPES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (),
    ((READ,),),
    ((MERGE,), (READ,)),
    ((DESTROY,),),
    ((READ, MERGE, DESTROY),),
    ((MERGE,), (DESTROY, DESTROY), (READ,)),
)


@dataclass
class Account:
    """What was seen from outside."""

    accepted: list[tuple[str, str]] = field(default_factory=list)
    """(conversation, client id) of each message that was said to be stored."""
    stuck: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    """Answers that are neither good nor an honest refusal, and processes that did not end in time."""
    faults: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


class Peace:
    """Keeps trouble away while somebody has waited too long: a slow machine gets nothing done between two harms."""

    def __init__(self) -> None:
        self._wanted_by = 0
        self._is_over = asyncio.Event()
        self._is_over.set()

    @contextlib.contextmanager
    def patience(self) -> Iterator[Callable[[], bool]]:
        """Gives what says whether it is worth to wait on."""
        began, wants_peace = time.monotonic(), False

        def lasts() -> bool:
            nonlocal wants_peace
            waited = time.monotonic() - began
            if waited >= PATIENCE and not wants_peace:
                wants_peace = True
                self._wanted_by += 1
                self._is_over.clear()
            return waited < PATIENCE + MOST_SECONDS_OF_PEACE

        try:
            yield lasts
        finally:
            if wants_peace:
                self._wanted_by -= 1
            if not self._wanted_by:
                self._is_over.set()

    async def end(self) -> None:
        """Wait until nobody wants it."""
        await self._is_over.wait()


class Person:
    """Talks in one conversation at a time, over REST or a socket, at whichever process answers."""

    def __init__(
        self, made: Installation, account: Account, peace: Peace, dice: random.Random
    ) -> None:
        self._made = made
        self._account = account
        self._peace = peace
        self._dice = dice
        self.waits_for = "nothing yet"
        self._client = httpx2.AsyncClient(timeout=20, trust_env=False)
        self._headers = {
            "Authorization": f"Bearer {made.seeded.token}",
            "X-Workspace": made.seeded.workspace,
        }

    async def close(self) -> None:
        await self._client.aclose()

    async def live_through_a_turn(self) -> None:
        """Send a message, and see to it that it ends."""
        conversation = await self._insist(
            "POST", "/api/conversations/", {"bud_id": self._made.seeded.bud}
        )
        plan = Plan(
            token=str(uuid7()),
            steps=self._dice.choice(SHAPES),
            pause=self._dice.choice([0.0, 0.3, 1.5, 4.0]),
            words=self._dice.choice([2, 10, 40]),
        )
        by_socket = self._dice.random() < 0.5
        send = self._send_by_socket if by_socket else self._send_by_rest
        started = time.monotonic()
        await send(conversation["id"], plan)
        queues = self._dice.random() < 0.2
        if queues:
            await self._send_by_rest(conversation["id"], Plan(token=str(uuid7()), steps=()))
        stops_at = started + self._dice.uniform(0.2, 3) if self._dice.random() < 0.1 else None
        await self._see_it_end(conversation["id"], started, stops_at)
        self._account.seconds.append(time.monotonic() - started)

    async def _see_it_end(self, conversation: str, started: float, stops_at: float | None) -> None:
        path = f"/api/conversations/{conversation}/messages/?page_size=100"
        self.waits_for = f"the end of {conversation}"
        with self._peace.patience() as it_lasts:
            while it_lasts():
                messages = (await self._insist("GET", path))["results"]
                turns = list(dict.fromkeys(one["turn_id"] for one in messages if one["turn_id"]))
                states = [await self._insist("GET", f"/api/turns/{turn}/") for turn in turns]
                waiting = await self._insist("GET", f"/api/conversations/{conversation}/")
                if (
                    states
                    and all(state["status"] in FINAL for state in states)
                    and not waiting.get("queue")
                ):
                    self._account.ended.update(state["status"] for state in states)
                    return
                for state in states:
                    if state["status"] not in FINAL:
                        await self._decide(state["id"])
                        if stops_at is not None and time.monotonic() > stops_at:
                            stops_at = None
                            await self._try("POST", f"/api/turns/{state['id']}/stop/", {})
                await asyncio.sleep(0.15)
        self._account.stuck.append(f"the turns of {conversation} do not end")

    async def _decide(self, turn: str) -> None:
        for call in await self._insist("GET", f"/api/turns/{turn}/tool-calls/"):
            path = f"/api/tool-calls/{call['id']}"
            if call["status"] == "waiting_for_approval":
                word = "approve" if self._dice.random() < 0.9 else "refuse"
                await self._try("POST", f"{path}/decide/", {"decision": word})
            elif call["status"] == "outcome_unknown":
                word = self._dice.choice(["run_again", "mark_done", "give_up"])
                await self._try("POST", f"{path}/resolve/", {"resolution": word})

    async def _send_by_rest(self, conversation: str, plan: Plan) -> None:
        client_id = str(uuid7())
        body = {"client_id": client_id, "text": plan.as_text(), "when_busy": "queue"}
        await self._insist("POST", f"/api/conversations/{conversation}/messages/", body)
        self._account.accepted.append((conversation, client_id))

    async def _send_by_socket(self, conversation: str, plan: Plan) -> None:
        """As a page does: over and over with the same id, until it hears that it was taken."""
        self.waits_for = f"a socket that takes a message of {conversation}"
        client_id = str(uuid7())
        command = {
            "type": "send",
            "ref": "1",
            "conversation_id": conversation,
            "client_id": client_id,
            "text": plan.as_text(),
        }
        with self._peace.patience() as it_lasts:
            while it_lasts():
                with contextlib.suppress(Exception):
                    if await self._say(command):
                        self._account.accepted.append((conversation, client_id))
                        return
                await asyncio.sleep(0.3)
        raise TimeoutError("no process takes messages over sockets")

    async def _say(self, command: dict[str, Any]) -> bool:
        port = self._dice.choice(self._made.ports)
        url = f"ws://localhost:{port}/ws/w/{self._made.seeded.workspace}/"
        headers = {"Origin": f"http://localhost:{port}", "Cookie": self._made.seeded.cookie}
        async with asyncio.timeout(10), self._client.websocket(url, headers=headers) as page:
            subscribe = {
                "type": "subscribe",
                "ref": "0",
                "conversation_id": command["conversation_id"],
            }
            await page.send_text(json.dumps(subscribe))
            await page.send_text(json.dumps(command))
            if self._dice.random() < 0.15:
                return False  # the line is cut before the answer; the message may be stored or not
            while True:
                body = json.loads(await page.receive_text())
                if body.get("ref") == "1":
                    return bool(body["type"] == "accepted")

    async def _insist(self, method: str, path: str, body: Any = None) -> Any:
        """Until some process gives a good answer."""
        self.waits_for = f"{method} {path}"
        with self._peace.patience() as it_lasts:
            while it_lasts():
                answer = await self._try(method, path, body)
                if answer is not None:
                    return answer
                await asyncio.sleep(0.3)
        raise TimeoutError(f"no process answers {method} {path}")

    async def _try(self, method: str, path: str, body: Any = None) -> Any:
        url = f"http://localhost:{self._dice.choice(self._made.ports)}{path}"
        try:
            answer = await self._client.request(method, url, json=body, headers=self._headers)
        except (httpx2.TransportError, OSError):
            return None
        if answer.status_code < 300:
            return answer.json()
        if answer.status_code not in (409, 429, 503):
            text = answer.text[:500]
            self._account.odd.append(f"{answer.status_code} to {method} {url}: {text}")
        return None
