"""Requests that wait for something hold no database connection, so others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async
from django.conf import settings
from django.core import mail
from django.db import connection, connections, transaction
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory, override_settings

from chat.sockets import open as open_sockets
from config.serving.middleware import StreamMiddleware
from mcp_servers.client.connections import runtime
from tests.mcp_servers.gate.crowds import Crowd, Holding, make_tools, sign_in
from workspaces.database import wait_for


@pytest.fixture
def holding() -> Iterator[list[Holding]]:
    servers = [Holding(), Holding()]
    yield servers
    for server in servers:
        server.stop()


def taken() -> int:
    """Connections of the pool that somebody holds."""
    stats: dict[str, int] = connection.pool.get_stats()  # type: ignore[attr-defined]
    return stats.get("pool_size", 0) - stats.get("pool_available", 0)


@pytest.mark.postgresql
@pytest.mark.timeout(600)
async def test_calls_pages_and_sockets_at_four_times_the_pool(
    transactional_db: None, holding: list[Holding], monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-260, REL-28: 80 calls wait at their servers without a connection, and pages and sockets are served; then
    80 of each at the same moment. Nobody hears 503."""
    from tests.factories import make_tenant

    many = 4 * settings.TRELLIS.database_pool_size
    # All of them are one person's.
    ample = settings.TRELLIS.model_copy(update={"sockets_per_person": 2 * many})
    monkeypatch.setattr(open_sockets, "settings", SimpleNamespace(TRELLIS=ample))
    tenant = await sync_to_async(make_tenant)("acme")
    held = await sync_to_async(make_tools)(tenant, holding, "hold")
    quick = await sync_to_async(make_tools)(tenant, holding, "echo")
    crowd = Crowd(tenant, *await sync_to_async(sign_in)(tenant))
    async with crowd.http:
        waiting = [
            asyncio.create_task(crowd.call(held[number % 2], number)) for number in range(many)
        ]
        async with asyncio.timeout(240):
            while sum(len(server.calls) for server in holding) < many:
                assert not any(task.done() for task in waiting), [
                    task.result() for task in waiting if task.done()
                ]
                await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            while taken() > settings.TRELLIS.database_pool_size // 2:
                await asyncio.sleep(0.05)
        pages = await asyncio.gather(*(crowd.page() for _ in range(many)))
        sockets = await asyncio.gather(*(crowd.socket() for _ in range(many)))
        for server in holding:
            server.let_go()
        calls = await asyncio.gather(*waiting)
        assert (set(pages), set(sockets), set(calls)) == ({200}, {200}, {200})

        together = await asyncio.gather(
            *(crowd.call(quick[number % 2], number) for number in range(many)),
            *(crowd.page() for _ in range(many)),
            *(crowd.socket() for _ in range(many)),
        )
    assert set(together) == {200}


@pytest.mark.both_engines
def test_nobody_waits_within_a_transaction(transactional_db: None) -> None:
    """REL-29, REL-260: neither door into async code opens while a transaction is open."""

    async def never() -> None:
        raise AssertionError("it ran")

    with transaction.atomic():
        with pytest.raises(RuntimeError, match="transaction is open"):
            wait_for(never)
        with pytest.raises(RuntimeError, match="transaction is open"):
            runtime.run_sync(never())


@pytest.mark.postgresql
def test_who_waits_holds_no_connection(transactional_db: None) -> None:
    """REL-260: through either door, before a stream is read, and while a mail server takes its time."""

    ours = connections["default"]

    async def look() -> bool:
        return ours.connection is None

    def use() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert ours.connection is not None

    use()
    assert wait_for(look)
    use()
    assert runtime.run_sync(look())
    use()
    middleware = StreamMiddleware(lambda _: HttpResponse())
    middleware.process_response(RequestFactory().get("/"), HttpResponse("whole"))
    assert ours.connection is not None
    middleware.process_response(RequestFactory().get("/"), StreamingHttpResponse(["piece"]))
    assert ours.connection is None
    use()
    # Nobody listens there: it gives up, after it has given the connection back.
    away = {"EMAIL_BACKEND": "workspaces.delivery.smtp.EmailBackend", "EMAIL_HOST": "127.0.0.1"}
    with override_settings(**away, EMAIL_PORT=9), pytest.raises(OSError):
        mail.send_mail("subject", "text", None, ["a@example.com"])
    assert ours.connection is None


@pytest.mark.postgresql
def test_lanes_leave_the_gate_its_connections(transactional_db: None) -> None:
    """REL-260: requests' threads take at most what is left of the pool without the threads of `in_database`."""
    from tests.threads import Threads
    from workspaces.database import THREADS, in_database

    def hold(_: Any) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.2)")
        return taken()

    connection.close()
    most = settings.TRELLIS.database_pool_size - THREADS + taken()
    with Threads(3 * most) as threads:
        futures = [threads.submit(hold, number) for number in range(3 * most)]
        assert wait_for(in_database, hold, None) <= most + 1
        assert max(future.result(60) for future in futures) <= most + 1
