"""A server process on a core of its own, and people who sit before it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from uuid_utils.compat import uuid7

from bench.ground import Ground
from bench.processes import free_port, wait_for
from bench.web_socket import WebSocket
from chat.services.conversations import create_conversation
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.models import Membership, User

ORIGIN = "http://localhost:8000"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves."""

    port: int
    pid: int

    def resident_kib(self) -> float:
        """The memory that it has in use, as the kernel counts it."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return float(line.split()[1])


@dataclass(frozen=True, slots=True)
class Seat:
    """A person with a session and a conversation."""

    person: User
    cookie: str
    slug: str
    conversation_id: str

    async def sit_down(self, port: int) -> WebSocket:
        """Open the socket of a page, and subscribe to the conversation."""
        socket = await WebSocket.open(
            port, f"/ws/w/{self.slug}/", cookie=self.cookie, origin=ORIGIN
        )
        subscribe = {"type": "subscribe", "conversation_id": self.conversation_id}
        try:
            await socket.ask(subscribe, "snapshot", "current")
        except (OSError, TimeoutError):
            await socket.close()
            raise
        return socket


@contextmanager
def serving(application: str, port: int | None = None) -> Iterator[Server]:
    """Serve an ASGI application with Daphne, on the machine's last core; on a free port, if none is given."""
    port = port or free_port()
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None

    def stay_on_the_core() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})

    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), application]
    process = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=stay_on_the_core,  # noqa: PLW1509 - no thread of ours holds a lock that it needs
    )
    try:
        wait_for(port, START_SECONDS)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def make_seats(ground: Ground, count: int) -> list[Seat]:
    """So many people more, each with a session and a conversation of their own."""
    workspace = ground.bud.workspace
    people = [User(email=f"{uuid7()}@trellis.example") for _ in range(count)]
    for person in people:
        person.set_unusable_password()
    User.objects.bulk_create(people)
    Membership.objects.bulk_create(
        [Membership(workspace=workspace, user=person, role="member") for person in people]
    )
    return [
        Seat(person, sign_in(person), workspace.slug, begin_chat(ground, person))
        for person in people
    ]


def sign_in(person: User) -> str:
    """A browser session of theirs: its cookie, as `name=value`."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.create()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


def begin_chat(ground: Ground, person: User) -> str:
    """A new conversation of theirs: its id."""
    actor = actor_for(person, ground.bud.workspace, source=Source.COMMAND)
    return str(create_conversation(bud=ground.bud, owner=person, actor=actor).pk)
