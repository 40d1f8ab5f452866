"""Clients stop waiting, or say that they do: then the call ends, at the server too."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx2
import pytest
from django.db import connection

from config.bootstrap import ROOT, VENV
from mcp_servers.client.connections import runtime
from mcp_servers.endpoint import cancelling
from mcp_servers.models import McpTool
from tests.factories import Tenant
from tests.fakes.full_server import FullServer
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.endpoint.leaving import (
    Leaving,
    call_of_it,
    ended,
    leaving_client,
)
from tests.patience import PATIENCE, wait_until
from tests.ports import free_port
from tests.scaled.installation import is_ready
from tests.workspaces.api.tokens import bearer, token_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_client_of_today_that_hangs_up_ends_its_call(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2115: that is how it says so. Source: MCP specification of 2026-07-28, "Cancellation"."""
    server, _ = full
    call = leaving_client(McpClient(tenant, token_for(tenant), TODAYS))
    wait_until(lambda: server.calls)
    call.leave()
    wait_until(lambda: server.cancelled)
    wait_until(lambda: ended(tenant) == ["cancelled"])


def test_a_client_of_before_says_so_and_may_lose_its_connection(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2115: a lost connection alone ends nothing. Source: MCP specification of 2025-11-25, "Cancellation"."""
    server, _ = full
    client = McpClient(tenant, token_for(tenant), BEFORE)
    calls = [leaving_client(client), leaving_client(client, 9, seconds=61)]
    wait_until(lambda: len(server.calls) == 2)
    for call in calls:
        call.leave()
    other = McpClient(tenant, token_for(tenant), BEFORE)
    # What is sent last is heard last.
    for whose, request_id in ((other, 7), (client, 8), (client, 9)):
        whose.notify("notifications/cancelled", {"requestId": request_id})
    wait_until(lambda: 61 in server.cancelled)
    assert server.cancelled == [61]
    client.notify("notifications/cancelled", {"requestId": 7})
    wait_until(lambda: server.cancelled == [61, 60])
    wait_until(lambda: ended(tenant) == ["cancelled"] * 2)


@pytest.fixture
def another_process(tmp_path: Path) -> Iterator[str]:
    """Where a further process of the installation serves."""
    port = free_port()
    parts = urlsplit(os.environ["DATABASE_URL"])
    url = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
    command = [
        str(VENV / "bin" / "daphne"),
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
        "config.asgi:application",
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: is_ready(port))
        yield f"http://localhost:{port}"
    finally:
        process.kill()
        process.wait()


def take_back_at(origin: str, client: McpClient, request_id: int = 7) -> None:
    """Send the notification to a process of the installation."""
    headers, body = client.message("notifications/cancelled", {"requestId": request_id}, None)
    answer = httpx2.post(f"{origin}{client.url}", json=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 202, answer.text


def call_at(origin: str, client: McpClient, request_id: int = 7, seconds: int = 60) -> None:
    """Call that tool by a process of the installation, which may end meanwhile."""
    headers, body = call_of_it(client, request_id, seconds)
    with contextlib.suppress(httpx2.TransportError):
        httpx2.post(f"{origin}{client.url}", json=body, headers=headers, timeout=PATIENCE)


@pytest.mark.postgresql
@pytest.mark.redis
def test_a_client_is_heard_at_whatever_process_it_reaches(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool, another_process: str
) -> None:
    """REL-2191: a proxy sends the notification to any of them. Another token or id stops nothing there, nor does one that a call in each of two processes has."""
    server, _ = full
    client = McpClient(tenant, token_for(tenant), BEFORE)
    calls = [leaving_client(client), leaving_client(client, 9, seconds=61)]
    wait_until(lambda: len(server.calls) == 2)
    take_back_at(another_process, McpClient(tenant, token_for(tenant), BEFORE))
    take_back_at(another_process, client, 8)
    # What is sent the same way is heard later.
    take_back_at(another_process, client, 9)
    wait_until(lambda: 61 in server.cancelled)
    wait_until(lambda: ended(tenant))
    assert (server.cancelled, ended(tenant)) == ([61], ["cancelled"])
    take_back_at(another_process, client)
    wait_until(lambda: server.cancelled == [61, 60])
    wait_until(lambda: ended(tenant) == ["cancelled"] * 2)
    for call in calls:
        call.leave()
    calls = [leaving_client(client), leaving_client(client, 10, seconds=62)]
    for request_id, seconds in ((7, 60), (11, 63)):
        arguments = (another_process, client, request_id, seconds)
        threading.Thread(target=call_at, args=arguments).start()
    wait_until(lambda: len(server.calls) == 6)
    take_back_at(another_process, client)
    client.notify("notifications/cancelled", {"requestId": 7})
    take_back_at(another_process, client, 10)
    client.notify("notifications/cancelled", {"requestId": 11})
    wait_until(lambda: {62, 63} <= set(server.cancelled))
    wait_until(lambda: len(ended(tenant)) >= 4)
    assert server.cancelled.count(60) == 1
    assert ended(tenant) == ["cancelled"] * 4
    for call in calls:
        call.leave()


@pytest.mark.parametrize(
    ("body", "request_id"),
    [
        (rb'{"method": "notifications\/cancelled", "params": {"requestId": "a"}}', "a"),
        (b'{"method": "notifications/cancelled", "params": {"requestId": 7}}', 7),
        (b'{"method": "notifications/cancelled", "params": {"requestId": true}}', None),
        (b'{"method": "notifications/cancelled", "params": []}', None),
        (b'{"method": "notifications/cancelled", "params": ' + b"[" * 60_000, None),
    ],
)
def test_a_request_is_taken_back_in_whatever_way_it_is_written(
    body: bytes, request_id: int | str | None
) -> None:
    """REL-2115: PHP writes a slash with a backslash before it. What cannot be read takes nothing back."""
    assert cancelling.cancelled_id(body) == request_id


def test_two_windows_with_one_token_do_not_end_each_others_calls(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2115: both number their requests from 1, so nobody knows which of the two is meant."""
    server, _ = full
    client = McpClient(tenant, token_for(tenant), BEFORE)
    calls = [*(leaving_client(client) for _ in range(2)), leaving_client(client, 8, seconds=61)]
    wait_until(lambda: len(server.calls) == 3)
    for request_id in (7, 8):  # what is sent last is heard last
        client.notify("notifications/cancelled", {"requestId": request_id})
    wait_until(lambda: 61 in server.cancelled)
    assert server.cancelled == [61]
    for call in calls:
        call.leave()


def test_whoever_tries_a_tool_over_rest_and_leaves_ends_the_call(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2116: with an Idempotency-Key it goes on, because whoever sends one comes back for the answer."""
    server, _ = full
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    path = f"/api/tools/{silent.pk}/test/"
    body = json.dumps({"arguments": {"seconds": 60}, "confirm": True}).encode()
    leaving = Leaving(path, headers, body)
    wait_until(lambda: server.calls)
    leaving.leave()
    wait_until(lambda: server.cancelled)
    wait_until(lambda: ended(tenant) == ["cancelled"])
    body = json.dumps({"arguments": {"seconds": 1}, "confirm": True}).encode()
    leaving = Leaving(path, {**headers, "Idempotency-Key": "once"}, body)
    wait_until(lambda: len(server.calls) == 2)
    leaving.leave()
    wait_until(lambda: sorted(ended(tenant)) == ["cancelled", "ok"])


def test_whoever_waits_while_the_process_ends_reads_that(
    tenant: Tenant,
    full: tuple[FullServer, str],
    silent: McpTool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """REL-2193: a restart cuts off calls that go on for longer than it waits. Nothing is wrong at the endpoint, so the log has no error of it."""
    server, _ = full
    call = leaving_client(McpClient(tenant, token_for(tenant), BEFORE))
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    body = json.dumps({"arguments": {"seconds": 60}, "confirm": True}).encode()
    trial = Leaving(f"/api/tools/{silent.pk}/test/", headers, body)
    wait_until(lambda: len(server.calls) == 2)
    runtime.shutdown(0.1)
    answer = call.answer()
    assert (call.status, answer["id"]) == (200, 7)
    assert "restarted" in answer["error"]["message"]
    detail = trial.answer()["errors"][0]
    assert (trial.status, detail["code"]) == (503, "shutting_down")
    wait_until(lambda: ended(tenant) == ["cancelled"] * 2)
    errors = [str(record.msg) for record in caplog.records if record.levelno >= logging.ERROR]
    assert not [error for error in errors if "/mcp/" in error]
