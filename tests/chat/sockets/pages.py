"""Open pages, and what their sockets are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from channels.db import database_sync_to_async as sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client
from uuid_utils.compat import uuid7

from config.asgi import application
from tests.chat.sockets.protocol import check_frame
from tests.factories import Tenant
from tests.patience import PATIENCE

Event = dict[str, Any]
ORIGIN = b"http://testserver"


class Socket:
    """An open page. Every frame that it reads has to be one that docs/protocol.json describes."""

    def __init__(self, communicator: WebsocketCommunicator) -> None:
        self.raw = communicator
        self.events: list[Event] = []

    async def say(self, **command: Any) -> str:
        """Send a command; returns its reference."""
        ref = command.setdefault("ref", uuid7().hex)
        await self.raw.send_to(text_data=json.dumps(command))
        return str(ref)

    async def until(self, wanted: Callable[[Event], bool], seconds: float = PATIENCE) -> Event:
        """The next event that fits; those before it are kept in `events`."""
        async with asyncio.timeout(seconds):
            while True:
                output = await self.raw.receive_output(seconds)
                if output["type"] == "websocket.close":
                    raise AssertionError(f"closed with {output.get('code')}")
                event = json.loads(output["text"])
                check_frame(event)
                self.events.append(event)
                if wanted(event):
                    return event

    async def answer(self, **command: Any) -> Event:
        """Send a command and wait for what answers it."""
        ref = await self.say(**command)
        return await self.until(lambda event: event.get("ref") == ref)

    async def caught_up(self, seq: int) -> None:
        """Wait for the event of that number, if it has not come yet."""
        if all(event.get("seq", 0) < seq for event in self.events):
            await self.until(lambda event: event.get("seq", 0) >= seq)

    async def close_code(self, seconds: float = PATIENCE) -> int:
        """Wait until the server closes the socket."""
        async with asyncio.timeout(seconds):
            while True:
                output = await self.raw.receive_output(seconds)
                if output["type"] == "websocket.close":
                    return int(output["code"])


def cookie_of(client: Client) -> bytes:
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}".encode()


@asynccontextmanager
async def opened(
    tenant: Tenant,
    role: str = "member",
    *,
    slug: str | None = None,
    query: str = "",
    client: Client | None = None,
) -> AsyncIterator[Socket]:
    """A socket of that person, or of whoever is signed in in that browser."""
    client = client or await sync_to_async(tenant.client)(role)
    headers = [(b"origin", ORIGIN), (b"host", b"testserver"), (b"cookie", cookie_of(client))]
    path = f"/ws/w/{slug or tenant.workspace.slug}/{query}"
    communicator = WebsocketCommunicator(application, path, headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert connected
    socket = Socket(communicator)
    try:
        yield socket
    finally:
        await communicator.disconnect()


def is_turn(*statuses: str) -> Callable[[Event], bool]:
    return lambda event: event["type"] == "turn.changed" and event["turn"]["status"] in statuses
