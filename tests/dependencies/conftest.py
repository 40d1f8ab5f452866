"""One installation with services of its own, which the tests of this folder hurt one after another."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from tests.chaos.installation import Installation, installation
from tests.chaos.scenery import Plan
from tests.patience import PATIENCE, wait_until

FINAL = {"completed", "failed", "cancelled", "interrupted"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; status 0 for nothing at all."""

    status: int
    body: Any
    headers: dict[str, str]
    seconds: float


@dataclass
class Client:
    """A program that talks with one process."""

    made: Installation
    sent: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, path: str, body: Any = None, *, at: int = 0, seconds: float = PATIENCE) -> Answer:
        """One request, whatever comes of it."""
        headers = {
            "Authorization": f"Bearer {self.made.seeded.token}",
            "X-Workspace": self.made.seeded.workspace,
            "Content-Type": "application/json",
        }
        url = f"http://localhost:{self.made.ports[at]}{path}"
        data = json.dumps(body).encode() if body is not None else None
        began = time.monotonic()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, headers), timeout=seconds
            ) as answer:
                raw, status, got = answer.read(), answer.status, dict(answer.headers)
        except urllib.error.HTTPError as error:
            raw, status, got = error.read(), error.code, dict(error.headers)
        except OSError:
            return Answer(0, None, {}, time.monotonic() - began)
        try:
            parsed = json.loads(raw)
        except ValueError:
            parsed = raw
        return Answer(status, parsed, got, time.monotonic() - began)

    def good(self, path: str, body: Any = None, *, at: int = 0) -> Any:
        """The body of an answer that has to be good."""
        answer = self.ask(path, body, at=at)
        assert answer.status in (200, 201, 202), (answer, self.made.logs())
        return answer.body

    def conversation(self, *, at: int = 0) -> str:
        """A new one."""
        body = {"bud_id": self.made.seeded.bud}
        return str(self.good("/api/conversations/", body, at=at)["id"])

    def send(self, plan: Plan, *, at: int = 0) -> str:
        """A message in a new conversation; the turn's id."""
        conversation = self.conversation(at=at)
        path = f"/api/conversations/{conversation}/messages/"
        client_id = str(uuid7())
        accepted = self.good(path, {"client_id": client_id, "text": plan.as_text()}, at=at)
        self.sent.append((conversation, client_id))
        return str(accepted["turn"]["id"])

    def turn(self, turn: str, *, at: int = 0) -> str:
        """Its state; empty while nobody answers."""
        answer = self.ask(f"/api/turns/{turn}/", at=at)
        return str(answer.body["status"]) if answer.status == 200 else ""

    def until(self, turn: str, *statuses: str, at: int = 0, seconds: float = PATIENCE) -> str:
        """Wait until it is in one of these states, or has ended; which."""
        seen = ""

        def is_there() -> bool:
            nonlocal seen
            seen = self.turn(turn, at=at)
            return seen in (statuses or FINAL)

        wait_until(is_there, seconds, f"the turn ({seen})")
        return seen

    def calls(self, turn: str, *, at: int = 0) -> list[dict[str, Any]]:
        """The turn's tool calls."""
        return list(self.good(f"/api/turns/{turn}/tool-calls/", at=at))

    def violations(self) -> list[Any]:
        """What the history checker has to say."""
        effects = [(one.tool, dict(one.arguments)) for one in self.made.tools.effects]
        values = {"accepted": self.sent, "effects": effects}
        return list(self.made.run("tests.chaos.look", text=json.dumps(values))["violations"])


@pytest.fixture(scope="session")
def made() -> Iterator[Installation]:
    """Two servers, a worker and a scheduler; leases and farewells are short."""
    with installation(lease_seconds=4.0, DRAIN_SECONDS="5") as running:
        yield running


@pytest.fixture
def client(made: Installation) -> Client:
    """Somebody who talks with it, while all its parts are there."""
    for port in made.ports:
        made.until(f"readiness of {port}", lambda port=port: made.is_ready(port))  # type: ignore[misc]
    made.tools.seconds = 0.0
    return Client(made)


def plan(*tools: str, pause: float = 0.0) -> Plan:
    """A plan with one call in each step."""
    return Plan(token=str(uuid7()), steps=[(tool,) for tool in tools], pause=pause)
