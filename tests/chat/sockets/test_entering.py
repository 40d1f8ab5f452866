"""Who is let in at a socket, and how many at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import settings
from redis.exceptions import ConnectionError as RedisConnectionError

from chat.sockets import open as open_sockets
from chat.wire.events import CloseCode
from config.asgi import application
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.registry import health
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import (
    ORIGIN,
    Socket,
    opened,
)
from tests.factories import make_tenant
from tests.mcp_servers.factories import http_server
from tests.patience import PATIENCE
from workspaces.delivery.announcements import Announcement, announce


@pytest.mark.parametrize(
    "origin",
    [
        b"http://evil.example",
        b"null",
        None,
        b"http://testserver:81",
        b"https://testserver",
        b"http://testserver.evil.example",
        b"http://eviltestserver",
    ],
)
async def test_a_foreign_origin_opens_nothing(origin: bytes | None) -> None:
    """SEC-15: scheme, host and port must be one of ours."""
    headers = [(b"host", b"testserver"), *([(b"origin", origin)] if origin else [])]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert not connected


async def test_a_foreign_host_opens_nothing() -> None:
    """SEC-16: Host is checked for sockets too."""
    headers = [(b"host", b"evil.example"), (b"origin", ORIGIN)]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert not connected


@pytest.mark.parametrize("path", ["/", "/ws/w/%00/", "/ws/w/../acme/", "/ws/w/acme"])
async def test_there_is_no_socket_elsewhere(path: str) -> None:
    """SEC-971: strangers who try other addresses cause no error."""
    headers = [(b"host", b"testserver"), (b"origin", ORIGIN)]
    communicator = WebsocketCommunicator(application, path, headers=headers)
    connected, _ = await communicator.connect(timeout=PATIENCE)
    assert not connected


@pytest.mark.django_db(transaction=True)
async def test_strangers_and_non_members_are_turned_away() -> None:
    """SEC-06: 4401 without a session, 4403 in a workspace of others."""
    headers = [(b"host", b"testserver"), (b"origin", ORIGIN)]
    communicator = WebsocketCommunicator(application, "/ws/w/acme/", headers=headers)
    await communicator.connect(timeout=PATIENCE)
    assert await Socket(communicator).close_code() == CloseCode.SIGN_IN_AGAIN
    mine = await sync_to_async(make_tenant)("mine")
    other = await sync_to_async(make_tenant)("other")
    async with opened(mine, slug=other.workspace.slug) as socket:
        assert await socket.close_code() == CloseCode.NOT_A_MEMBER


async def test_a_page_of_somebody_else_sends_nothing(chat: Chat) -> None:
    """SEC-415: a page that was left open closes if another person has signed in in its browser since."""
    tenant = chat.tenant
    async with opened(tenant, query=f"?person={tenant.owner.pk}") as socket:
        assert await socket.close_code() == CloseCode.SIGN_IN_AGAIN
    async with opened(tenant, query=f"?person={tenant.member.pk}") as socket:
        snapshot = await socket.answer(type="subscribe", conversation_id=str(chat.conversation.pk))
        assert snapshot["type"] == "snapshot"


@pytest.mark.parametrize("query", ["", "?checks=no", "?checks=yes"])
async def test_a_check_that_finds_nothing_new_is_news_for_pages_of_checks_alone(
    chat: Chat, query: str
) -> None:
    """REL-2562: every open chat reads its buds anew when a server changes; a check each minute is no change."""
    server = await sync_to_async(http_server)(chat.tenant, "https://example.org/mcp")
    note = sync_to_async(health.note_reading)
    async with opened(chat.tenant, query=query) as socket:
        await socket.answer(type="ping")
        for latency_ms in (5, 7):
            await note(server, health.HealthReading(latency_ms=latency_ms))
        gone = health.HealthReading(error=ConnectionFailed("gone."))
        await note(server, gone, is_asked_for=True)
        end = Announcement(kind="bud.changed", id=str(server.pk))
        await sync_to_async(announce)(chat.tenant.workspace.pk, end)
        await socket.until(lambda event: event.get("kind") == "bud.changed")
    heard = [event["kind"] for event in socket.events if event.get("id") == str(server.pk)]
    checks = ["server.checked"] if query == "?checks=yes" else []
    assert heard == ["server.changed", *checks, "server.changed", "bud.changed"]


def allow_sockets(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let one person have so many."""
    few = settings.TRELLIS.model_copy(update={"sockets_per_person": most})
    monkeypatch.setattr(open_sockets, "settings", SimpleNamespace(TRELLIS=few))


@pytest.mark.django_db(transaction=True)
async def test_one_person_cannot_open_sockets_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-681: pages beyond the limit hear why. Others are not concerned, and a page that closes makes room."""
    allow_sockets(monkeypatch, 2)
    tenant = await sync_to_async(make_tenant)("acme")
    client = await sync_to_async(tenant.client)("member")
    async with opened(tenant, client=client) as first:
        async with opened(tenant, client=client) as second:
            for page in (first, second):
                assert (await page.answer(type="ping"))["type"] == "pong"
            for _more in range(3):
                async with opened(tenant, client=client) as third:
                    assert await third.close_code() == CloseCode.TOO_MANY
            async with opened(tenant, "admin") as other:
                assert (await other.answer(type="ping"))["type"] == "pong"
        async with opened(tenant, client=client) as again:
            assert (await again.answer(type="ping"))["type"] == "pong"


@pytest.mark.django_db(transaction=True)
async def test_many_that_come_at_one_moment_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-681: a place is taken before the database is asked, so none slips through while it answers."""
    allow_sockets(monkeypatch, 3)
    tenant = await sync_to_async(make_tenant)("acme")
    client = await sync_to_async(tenant.client)("member")
    is_over = asyncio.Event()
    refused = 0

    async def come() -> None:
        nonlocal refused
        async with opened(tenant, client=client) as socket:
            await socket.say(type="ping")
            output = await socket.raw.receive_output(PATIENCE)
            if output["type"] == "websocket.close":
                assert output["code"] == CloseCode.TOO_MANY
                refused += 1
            await is_over.wait()

    coming = [asyncio.create_task(come()) for _n in range(10)]
    async with asyncio.timeout(PATIENCE):
        while refused < 7:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    assert refused == 7
    assert sum(open_sockets._places.values()) == 3
    is_over.set()
    await asyncio.gather(*coming)
    assert not open_sockets._places


async def test_a_page_that_comes_while_the_layer_is_away_is_sent_off_until_later(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-2884: the handshake was answered with a 500, and each try left a traceback."""

    async def away(*_args: Any) -> None:
        raise RedisConnectionError("Error 111 connecting to redis:6379. Connection refused.")

    monkeypatch.setattr(type(get_channel_layer()), "new_channel", away)
    async with opened(chat.tenant) as socket:
        assert await socket.close_code() == CloseCode.TRY_AGAIN_LATER
    assert "Traceback" not in caplog.text
