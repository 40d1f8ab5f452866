"""Many pages that come back at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from channels.testing import WebsocketCommunicator
from django.db.backends.utils import CursorWrapper

from chat.sockets import rounds
from config.asgi import application
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import ORIGIN, Socket, cookie_of
from tests.patience import PATIENCE

PAGES = 40
FRESH, CURRENT = 22, 8
"""Statements of one page that is given a snapshot, and of one that has missed nothing."""


@pytest.mark.parametrize(("misses", "most"), [(True, FRESH), (False, CURRENT)])
async def test_many_pages_at_once_are_all_served_at_a_bounded_price(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, misses: bool, most: int
) -> None:
    """REL-18: all are let in and told how things stand, and each costs a fixed number of statements."""
    await sync_to_async(chat.ask)("one")
    conversation = await sync_to_async(chat.reload_conversation)()
    cookie = cookie_of(await sync_to_async(chat.tenant.client)("member"))
    # What pages look for now and then is no part of coming back.
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 600.0)
    counted = _count(monkeypatch)
    path = f"/ws/w/{chat.tenant.workspace.slug}/"
    headers = [(b"origin", ORIGIN), (b"host", b"testserver"), (b"cookie", cookie)]

    async def come_back() -> WebsocketCommunicator:
        communicator = WebsocketCommunicator(application, path, headers=headers)
        connected, _ = await communicator.connect(timeout=PATIENCE)
        assert connected
        known: dict[str, Any] = {} if misses else {"seq": conversation.event_seq}
        answer = await Socket(communicator).answer(
            type="subscribe", conversation_id=str(conversation.pk), **known
        )
        assert answer["type"] == ("snapshot" if misses else "current")
        assert answer["seq"] == conversation.event_seq
        return communicator

    pages = await asyncio.gather(*(come_back() for _ in range(PAGES)))
    await asyncio.gather(*(Socket(page).answer(type="ping") for page in pages))
    assert len(pages) == PAGES
    assert counted() <= most * PAGES, f"{counted() / PAGES} statements for each page"
    await asyncio.gather(*(page.disconnect() for page in pages))


def _count(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Count the statements of all threads from now on."""
    lock = threading.Lock()
    number = 0
    execute = CursorWrapper.execute

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal number
        with lock:
            number += 1
        return execute(self, *args, **kwargs)

    monkeypatch.setattr(CursorWrapper, "execute", counted)
    return lambda: number
