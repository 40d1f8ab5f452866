"""A chaos run: people talk, processes die, and in the end everything has to be right.

python -m tests.chaos.run [--turns 200] [--seed N] [--short]

Prints its seed first, so that the same faults can be asked for again; the moments at which they hit are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
from uuid_utils.compat import uuid7

from tests.chaos.installation import START_SECONDS, Installation, Missing, installation
from tests.chaos.scenery import DESTROY, MERGE, READ, Plan

SIDE_BY_SIDE = 8
"""Conversations at a time."""
FINAL = {"completed", "failed", "cancelled", "interrupted"}
PATIENCE = 45.0
"""Seconds that somebody waits for anything amid the trouble."""
MOST_SECONDS_OF_PEACE = 240.0
"""After it, what has not come in peace either never comes."""
SERVED_SECONDS = 120.0
"""For a server to answer after its start."""
HARM_SECONDS = 240.0
"""For a harm, which ends with what was hurt being there again."""
MORE_SECONDS = 900.0
"""Beside the turns and the start of servers: for the first rows, the last harm and the verdict."""
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


Harm = Callable[[], Awaitable[None]]


class Trouble:
    """Does one harm after another, each of which ends with what was hurt being there again."""

    def __init__(
        self,
        made: Installation,
        account: Account,
        peace: Peace,
        dice: random.Random,
        *,
        lease_seconds: float,
    ) -> None:
        self._made = made
        self._account = account
        self._peace = peace
        self._dice = dice
        self._lease_seconds = lease_seconds
        self._to_servers: list[Harm] = [
            *[self._kill_server] * 4,
            *[self._pause_server] * 2,
            self._pause_server_for_long,
            self._end_server,
        ]
        self._to_the_rest: list[Harm] = [
            self._kill_worker,
            self._restart_redis,
            self._flush_redis,
            self._terminate_backends,
            self._restart_postgresql,
        ]

    async def go_on(self, until: asyncio.Event) -> None:
        """To one of the servers, and to what all rest on at the same time."""
        await asyncio.gather(
            self._do(self._to_servers, 0.5, 2.5, until),
            self._do(self._to_the_rest, 2.0, 6.0, until),
        )

    async def _do(self, kinds: list[Harm], least: float, most: float, until: asyncio.Event) -> None:
        """Every kind comes up before one comes twice."""
        harms: list[Harm] = []
        while True:
            if not harms:
                harms = list(kinds)
                self._dice.shuffle(harms)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._dice.uniform(least, most)):
                    await until.wait()
            await self._peace.end()
            if until.is_set():
                return
            await self._harm(harms.pop())

    async def _harm(self, harm: Harm) -> None:
        name = harm.__name__.removeprefix("_")
        self._account.faults[name] += 1
        try:
            async with asyncio.timeout(HARM_SECONDS):
                await harm()
        except Exception as error:
            self._account.odd.append(f"{name} did not end well: {error!r}")

    def _server(self) -> str:
        return self._dice.choice(["server0", "server1"])

    async def _kill_server(self) -> None:
        name = self._server()
        self._made.kill(name)
        self._made.start(name)
        await self._served(name)

    async def _end_server(self) -> None:
        name = self._server()
        process = self._made.processes[name]
        process.terminate()
        if await asyncio.to_thread(partial(_wait, process, PATIENCE)) is None:
            self._account.odd.append(f"{name} did not end in time")
            self._made.kill(name)
        self._made.start(name)
        await self._served(name)

    async def _pause_server(self) -> None:
        await self._pause(self._dice.uniform(0.5, 3.0))

    async def _pause_server_for_long(self) -> None:
        await self._pause(self._lease_seconds * self._dice.uniform(1.1, 1.4))

    async def _pause(self, seconds: float) -> None:
        process = self._made.processes[self._server()]
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)

    async def _kill_worker(self) -> None:
        self._made.kill("worker")
        self._made.start("worker")

    async def _restart_redis(self) -> None:
        self._made.services.stop_redis()
        await asyncio.sleep(self._dice.uniform(0.1, 3.0))
        self._made.services.start_redis()

    async def _flush_redis(self) -> None:
        await asyncio.to_thread(self._made.services.flush_redis)

    async def _terminate_backends(self) -> None:
        await asyncio.to_thread(self._made.services.terminate_backends)

    async def _restart_postgresql(self) -> None:
        await asyncio.to_thread(self._made.services.restart_postgresql)

    async def _served(self, name: str) -> None:
        port = self._made.ports[int(name[-1])]
        deadline = time.monotonic() + SERVED_SECONDS
        while time.monotonic() < deadline:
            if await asyncio.to_thread(self._made.status, port, "/healthz", 2.0) == 200:
                return
            await asyncio.sleep(0.2)
        raise TimeoutError(f"{name} does not serve")


def _wait(process: Any, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return int(process.returncode)
        time.sleep(0.05)
    return None


async def live(
    made: Installation, account: Account, *, turns: int, seed: int, lease: float, seconds: float
) -> None:
    """So many turns, some side by side, with trouble all the while.

    Args:
        seconds: after which nobody waits any more.
    """
    left = turns
    peace = Peace()

    async def talk(person: Person) -> None:
        nonlocal left
        try:
            while left > 0:
                left -= 1
                await person.live_through_a_turn()
        except TimeoutError as error:
            account.stuck.append(str(error))
        finally:
            await person.close()

    people = {
        asyncio.create_task(talk(person)): person
        for number in range(SIDE_BY_SIDE)
        for person in [Person(made, account, peace, random.Random(f"{seed} person {number}"))]
    }
    are_done = asyncio.Event()
    dice = random.Random(f"{seed} trouble")
    trouble = Trouble(made, account, peace, dice, lease_seconds=lease)
    troubled = asyncio.create_task(trouble.go_on(are_done))
    _, waiting = await asyncio.wait(people, timeout=seconds)
    for late in waiting:
        account.stuck.append(f"after {seconds:g} s somebody waits for {people[late].waits_for}")
        late.cancel()
    await asyncio.gather(*people, return_exceptions=True)
    are_done.set()
    await troubled
    for one in people.keys() - waiting:
        one.result()


def _left_transactions(made: Installation) -> int:
    """How many are open and do nothing, after those that only waited for a core have had time to end."""
    deadline = time.monotonic() + PATIENCE
    while True:
        left = made.services.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
            " AND now() - state_change > interval '1 second'"
        )[0][0]
        if not left or time.monotonic() > deadline:
            return int(left)
        time.sleep(1)


def judge(made: Installation, account: Account) -> int:
    """Print what came of it; the exit code."""
    effects = [(effect.tool, dict(effect.arguments)) for effect in made.tools.effects]
    output = made.run(
        "tests.chaos.look", text=json.dumps({"accepted": account.accepted, "effects": effects})
    )
    rules: Counter[str] = Counter(rule for rule, _, _ in output["violations"])
    lost = rules.pop("message.lost", 0) + rules.pop("message.twice", 0)
    doubled = rules.pop("effect.doubled", 0)
    stuck = len(account.stuck) + rules.pop("turn.stuck", 0) + rules.pop("turn.unheld", 0)
    log = sum(rules.pop(rule) for rule in list(rules) if rule.startswith("log."))
    log += rules.pop("effect.unrequested", 0)
    idle = _left_transactions(made)
    print(f"faults              {dict(account.faults)}")
    print(f"turns               {output['turns']}")
    print(f"tool calls          {output['calls']}, {len(effects)} effects")
    if account.seconds:
        ordered = sorted(account.seconds)
        print(
            f"seconds a turn      median {ordered[len(ordered) // 2]:.1f}, longest {ordered[-1]:.1f}"
        )
    print(f"lost messages       {lost}")
    print(f"doubled effects     {doubled}")
    print(f"stuck turns         {stuck}")
    print(f"audit mismatches    {log}")
    print(f"other violations    {sum(rules.values())}")
    print(f"odd answers         {len(account.odd)}")
    print(f"left transactions   {idle}")
    for text in (*account.stuck, *account.odd):
        print(f"  {text}")
    for rule, subject, text in output["violations"]:
        print(f"  {rule}  {subject}  {text}")
    bad = lost + doubled + stuck + log + sum(rules.values()) + len(account.odd) + idle
    print("All is right." if not bad else "FAILED")
    return 1 if bad else 0


def main() -> int:
    """Exit code 0 if nothing was lost, doubled, stuck or unrecorded; 1 if something was; 2 if it cannot run here."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    turns = min(options.turns, 16) if options.short else options.turns
    print(f"seed                {seed}", flush=True)
    account, began = Account(), time.monotonic()
    lease = 4.0 if options.short else 15.0
    most = 300.0 + 15.0 * turns
    # What hangs all the same is named, and left.
    faulthandler.dump_traceback_later(most + START_SECONDS + MORE_SECONDS, exit=True)
    try:
        with installation(lease_seconds=lease if options.short else None) as made:
            print(f"installed           {time.monotonic() - began:.0f} s", flush=True)
            started, code = time.monotonic(), 1
            try:
                asyncio.run(live(made, account, turns=turns, seed=seed, lease=lease, seconds=most))
                print(f"time                {time.monotonic() - started:.0f} s", flush=True)
                code = judge(made, account)
            finally:
                if code:
                    print(made.logs())
            return code
    except Missing as missing:
        print(missing)
        return 2
    finally:
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    sys.exit(main())
