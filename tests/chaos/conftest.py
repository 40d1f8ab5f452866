"""A model, a server that counts, and the process that forks those which die."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from config.bootstrap import ROOT
from tests.chaos.scenery import CountingTools, Plan, PlannedModel

MOST_CONVERSATIONS = 120


@dataclass(frozen=True, slots=True)
class Child:
    """A forked process."""

    pid: int
    name: str


class Forks:
    """Talks with `tests.chaos.forks`."""

    def __init__(self, environment: dict[str, str], model: PlannedModel, tools: CountingTools):
        self.tools = tools
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.chaos.forks",
                model.base_url,
                tools.url,
                str(MOST_CONVERSATIONS),
            ],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        seeded = self._answer()
        assert seeded["seed"] == 0, seeded
        self._conversations: list[str] = seeded["conversations"]

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def story(self, *, queues: bool = False, **plan: Any) -> Story:
        """A conversation nobody has spoken in, and a plan for it."""
        return Story(self, self._conversations.pop(), Plan(token=str(uuid7()), **plan), queues)

    def begin(self, job: str, stories: Sequence[Story], **order: Any) -> Child:
        """Start a process that does this job for these stories."""
        listed = [story.as_order() for story in stories]
        return Child(**self.ask(op="fork", job=job, stories=listed, **order))

    def end(self, child: Child) -> dict[str, Any]:
        """Wait until it ends, or stops: its exit code and what it told."""
        return self.ask(op="wait", pid=child.pid, name=child.name)

    def live(self, job: str, stories: Sequence[Story], **order: Any) -> dict[str, Any]:
        """A process from its beginning to its end."""
        return self.end(self.begin(job, stories, **order))

    def wake(self, child: Child) -> None:
        """Let a stopped process run again."""
        self.ask(op="continue", pid=child.pid)

    def go_on(self, stories: Sequence[Story]) -> dict[str, dict[str, Any]]:
        """Have a process go on with what others have left, until it all has ended; what became of each story."""
        ends = self.live("talk", stories)
        assert ends["code"] == 0
        return dict(ends["stories"])

    def violations(self, stories: Sequence[Story]) -> dict[str, list[str]]:
        """What the history checker has to say, by conversation; nothing of those where all is well."""
        effects = [(effect.tool, dict(effect.arguments)) for effect in self.tools.effects]
        answer = self.live("check", stories, effects=effects)
        assert answer["code"] == 0
        return {name: found for name, found in answer["stories"].items() if found}

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order, and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the forking process has died"
        return dict(json.loads(line))


@dataclass
class Story:
    """One conversation, lived through by several processes."""

    forks: Forks
    conversation: str
    plan: Plan
    queues: bool = False
    """A second message is sent at once, and waits."""
    client_id: str = field(default_factory=lambda: str(uuid7()))

    def as_order(self) -> dict[str, Any]:
        """As it is told to a process."""
        return {
            "conversation": self.conversation,
            "client_id": self.client_id,
            "text": self.plan.as_text(),
            "token": self.plan.token,
            "queues": self.queues,
        }

    def live(self, job: str = "talk", **order: Any) -> dict[str, Any]:
        """One process's part in it: its exit code, and what became of the story."""
        answer = self.forks.live(job, [self], **order)
        return {"code": answer["code"], **answer.get("stories", {}).get(self.conversation, {})}

    def done(self, tool: str) -> int:
        """How often a tool took effect."""
        return self.forks.tools.done(self.plan.token, tool)


@pytest.fixture(scope="session")
def forks(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Forks]:
    """On a copy of the tests' own database, which has all tables already."""
    folder = tmp_path_factory.mktemp("forks")
    environment = {**os.environ, "TRELLIS_DATA_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    for name in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
        environment.pop(name, None)
    with django_db_blocker.unblock():
        copied = _copy_database(folder)
    model, tools = PlannedModel(), CountingTools(seconds=0.05)
    running = Forks({**environment, **copied}, model, tools)
    yield running
    running.stop()
    model.stop()
    tools.stop()
    if copied:
        with psycopg.connect(os.environ["TEST_DATABASE_URL"], autocommit=True) as service:
            service.execute(f'DROP DATABASE "{_name_of(copied)}" WITH (FORCE)')


def _copy_database(folder: Path) -> dict[str, str]:
    name = str(connection.settings_dict["NAME"])
    assert "test" in name, "a test that uses the forks must be marked as one that uses the database"
    if connection.vendor == "sqlite":
        with (
            contextlib.closing(sqlite3.connect(name)) as source,
            contextlib.closing(sqlite3.connect(folder / "trellis.sqlite3")) as copy,
        ):
            source.backup(copy)
        return {}
    given = os.environ["TEST_DATABASE_URL"]
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone
    url = urlunsplit(urlsplit(given)._replace(path=f"/{name}_forks"))
    with psycopg.connect(given, autocommit=True) as service:
        service.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        service.execute(f'DROP DATABASE IF EXISTS "{name}_forks" WITH (FORCE)')
        service.execute(f'CREATE DATABASE "{name}_forks" TEMPLATE "{name}"')
    return {"DATABASE_URL": url}


def _name_of(environment: dict[str, str]) -> str:
    return urlsplit(environment["DATABASE_URL"]).path.removeprefix("/")
