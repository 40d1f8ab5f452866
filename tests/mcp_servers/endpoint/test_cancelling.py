"""Calls that take long. A client that waits hears of them; where one stops waiting, they end, at the server too."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import pytest
from django.db import InterfaceError, connection
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from audit.models import AuditEntry
from chat.models import Bud
from config.bootstrap import ROOT, VENV
from config.serving.handler import Handler
from mcp_servers.client.connections import runtime
from mcp_servers.endpoint import cancelling, streaming
from mcp_servers.endpoint.sign_in.ending import end_sign_in
from mcp_servers.gate import access
from mcp_servers.models import ClientSignIn, McpPrompt, McpResource, McpServer, McpTool
from tests.factories import Tenant
from tests.fakes.full_server import FullServer, full_server
from tests.mcp_servers.endpoint.client import BEFORE, TODAYS, McpClient, token_for
from tests.mcp_servers.endpoint.signing_in import SigningIn
from tests.mcp_servers.factories import http_server, looked_at, tool_of
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.scaled.installation import is_ready
from tests.workspaces.api.tokens import bearer, token_of
from workspaces.models import ApiToken, Membership, User, Workspace
from workspaces.people.tokens import revoke_token

pytestmark = pytest.mark.django_db(transaction=True)


class Leaving:
    """A request over ASGI, of a client that may hang up before it has its answer."""

    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.status: int | None = None
        self.body = b""
        self._loop = asyncio.new_event_loop()
        self._left = asyncio.Event()
        self._asked = [{"type": "http.request", "body": body}]
        self._scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in {
                    **headers,
                    "Host": "localhost",
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                }.items()
            ],
            "server": ("localhost", 80),
        }
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def leave(self) -> None:
        """Hang up."""
        self._loop.call_soon_threadsafe(self._left.set)
        self._thread.join(PATIENCE)

    def wait(self) -> None:
        """Wait until all of the answer is there."""
        self._thread.join(PATIENCE)

    def answer(self) -> Any:
        """What it was answered with."""
        self.wait()
        return json.loads(self.body)

    def _run(self) -> None:
        self._loop.run_until_complete(Handler()(self._scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            return self._asked.pop()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def until(holds: Callable[[], object]) -> None:
    """Wait for it."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def full() -> Iterator[tuple[FullServer, str]]:
    """A server one of whose tools says nothing for as long as one likes."""
    with full_server() as (server, listening):
        yield server, f"{listening.origin}/mcp"


@pytest.fixture
def silent(tenant: Tenant, full: tuple[FullServer, str]) -> McpTool:
    """That tool, which runs without asking."""
    server: McpServer = looked_at(
        tenant, http_server(tenant, full[1], name="full", is_used_everywhere=True)
    )
    return runs_by_itself(tool_of(server, "silent"))


def runs_by_itself(tool: McpTool) -> McpTool:
    """The tool, which an administrator lets run without asking."""
    tool.approval_override = "auto"
    tool.save()
    return tool


def call_of_it(
    client: McpClient, request_id: int = 7, seconds: int = 60
) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of a call of that tool."""
    return client.message(
        "tools/call", {"name": "full__silent", "arguments": {"seconds": seconds}}, request_id
    )


def leaving_client(client: McpClient, request_id: int = 7, seconds: int = 60) -> Leaving:
    """A call of that tool."""
    headers, body = call_of_it(client, request_id, seconds)
    return Leaving(client.url, headers, json.dumps(body).encode())


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are not there at once are streamed."""
    monkeypatch.setattr(streaming, "PATIENCE", 0.0)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.02)


def messages_in(body: bytes) -> list[Any]:
    """The messages of a stream."""
    lines = body.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def ended(tenant: Tenant) -> list[str]:
    """How calls ended, by the log."""
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    return list(entries.filter(action="tool_call.finished").values_list("outcome", flat=True))


@pytest.mark.usefixtures("streamed")
def test_an_answer_that_takes_long_begins_before_it_is_there(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2931: clients that wait a minute for the beginning of an answer, or for a sign of life, get both."""
    client = McpClient(tenant, token_for(tenant))
    runs_by_itself(tool_of(silent.server, "steps"))
    headers, body = client.message(
        "tools/call",
        {
            "name": "full__steps",
            "arguments": {"count": 3, "seconds": 0.2},
            "_meta": {"progressToken": "mine"},
        },
    )
    call = Leaving(client.url, headers, json.dumps(body).encode())
    until(lambda: call.body)
    assert (call.status, call.body[:2]) == (200, b": ")
    call.wait()
    *steps, answer = messages_in(call.body)
    assert {step["method"] for step in steps} == {"notifications/progress"}
    assert {step["params"]["progressToken"] for step in steps} == {"mine"}
    values = [step["params"]["progress"] for step in steps]
    assert values == sorted(set(values))
    assert (answer["id"], answer["result"]["isError"]) == (1, False)


@pytest.mark.usefixtures("streamed")
def test_a_stream_ends_as_any_answer_does(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2931: who hangs up on it ends the call of a client of today, and of no other. A restart is told."""
    server, _ = full
    token = token_for(tenant)
    todays, before = McpClient(tenant, token, TODAYS), McpClient(tenant, token, BEFORE)
    calls = [
        leaving_client(client, request_id, seconds=60 + request_id)
        for client, request_id in ((before, 7), (todays, 8), (before, 9))
    ]
    until(lambda: len(server.calls) == 3 and all(call.body for call in calls))
    *leaving, waiting = calls
    for call in leaving:
        call.leave()
    until(lambda: server.cancelled)
    assert server.cancelled == [68]
    runtime.shutdown(0.1)
    waiting.wait()
    (answer,) = messages_in(waiting.body)
    assert answer["id"] == 9
    assert "restarted" in answer["error"]["message"]


def test_a_client_of_today_that_hangs_up_ends_its_call(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2115: that is how it says so. Source: MCP specification of 2026-07-28, "Cancellation"."""
    server, _ = full
    call = leaving_client(McpClient(tenant, token_for(tenant), TODAYS))
    until(lambda: server.calls)
    call.leave()
    until(lambda: server.cancelled)
    until(lambda: ended(tenant) == ["cancelled"])


def test_a_client_of_before_says_so_and_may_lose_its_connection(
    tenant: Tenant, full: tuple[FullServer, str], silent: McpTool
) -> None:
    """REL-2115: a lost connection alone ends nothing. Source: MCP specification of 2025-11-25, "Cancellation"."""
    server, _ = full
    client = McpClient(tenant, token_for(tenant), BEFORE)
    calls = [leaving_client(client), leaving_client(client, 9, seconds=61)]
    until(lambda: len(server.calls) == 2)
    for call in calls:
        call.leave()
    other = McpClient(tenant, token_for(tenant), BEFORE)
    # What is sent last is heard last.
    for whose, request_id in ((other, 7), (client, 8), (client, 9)):
        whose.notify("notifications/cancelled", {"requestId": request_id})
    until(lambda: 61 in server.cancelled)
    assert server.cancelled == [61]
    client.notify("notifications/cancelled", {"requestId": 7})
    until(lambda: server.cancelled == [61, 60])
    until(lambda: ended(tenant) == ["cancelled"] * 2)


def _revoke(tenant: Tenant) -> None:
    revoke_token(
        token=ApiToken.objects.for_workspace(tenant.workspace).get(), actor=tenant.actor("member")
    )


def _suspend(tenant: Tenant) -> None:
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).update(
        suspended_at=timezone.now()
    )


def _suspend_workspace(tenant: Tenant) -> None:
    Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=False)


def _forbid(tenant: Tenant) -> None:
    Workspace.objects.filter(pk=tenant.workspace.pk).update(allows_mcp_clients=False)


@pytest.fixture
def watched(
    full: tuple[FullServer, str], silent: McpTool, monkeypatch: pytest.MonkeyPatch
) -> FullServer:
    """A server whose tool answers late. Access to it is looked at all the time."""
    monkeypatch.setattr(access, "CHECK_SECONDS", 0.05)
    return full[0]


@pytest.mark.parametrize("end", [_revoke, _suspend, _suspend_workspace, _forbid])
def test_a_call_ends_with_the_access_of_its_client(
    tenant: Tenant, watched: FullServer, end: Callable[[Tenant], None]
) -> None:
    """SEC-1151: what the server would have answered reaches nobody."""
    call = leaving_client(McpClient(tenant, token_for(tenant)))
    until(lambda: watched.calls)
    end(tenant)
    answer = call.answer()
    assert (answer["id"], answer["error"]["message"]) == (7, access.AccessEnded().message)
    assert watched.cancelled == [60]
    assert ended(tenant) == ["cancelled"]


def test_a_look_that_fails_is_not_the_last(
    tenant: Tenant, watched: FullServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1151: a connection that was closed meanwhile ends neither the call nor the watch over it."""
    failed = threading.Event()
    execute = CursorWrapper.execute

    def fail_once(cursor: CursorWrapper, sql: str, params: Any = None) -> Any:
        if sql.startswith("SELECT %s AS") and "allows_mcp" in sql and not failed.is_set():
            failed.set()
            raise InterfaceError("connection already closed")
        return execute(cursor, sql, params)

    call = leaving_client(McpClient(tenant, token_for(tenant)))
    until(lambda: watched.calls)
    monkeypatch.setattr(CursorWrapper, "execute", fail_once)
    until(failed.is_set)
    _revoke(tenant)
    assert call.answer()["error"]["message"] == access.AccessEnded().message


def test_a_call_goes_on_while_its_client_is_signed_in(tenant: Tenant, watched: FullServer) -> None:
    """SEC-1151: and it is stopped when the person signs the client out."""
    client = McpClient(tenant, SigningIn.begun(tenant).tokens()["access_token"])
    assert "result" in leaving_client(client, seconds=1).answer()
    call = leaving_client(client)
    until(lambda: len(watched.calls) == 2)
    for sign_in in ClientSignIn.objects.for_workspace(tenant.workspace):
        end_sign_in(sign_in=sign_in, actor=tenant.actor("member"))
    assert call.answer()["error"]["message"] == access.AccessEnded().message
    assert watched.cancelled == [60]


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
        until(lambda: is_ready(port))
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
    until(lambda: len(server.calls) == 2)
    take_back_at(another_process, McpClient(tenant, token_for(tenant), BEFORE))
    take_back_at(another_process, client, 8)
    # What is sent the same way is heard later.
    take_back_at(another_process, client, 9)
    until(lambda: 61 in server.cancelled)
    until(lambda: ended(tenant))
    assert (server.cancelled, ended(tenant)) == ([61], ["cancelled"])
    take_back_at(another_process, client)
    until(lambda: server.cancelled == [61, 60])
    until(lambda: ended(tenant) == ["cancelled"] * 2)
    for call in calls:
        call.leave()
    calls = [leaving_client(client), leaving_client(client, 10, seconds=62)]
    for request_id, seconds in ((7, 60), (11, 63)):
        arguments = (another_process, client, request_id, seconds)
        threading.Thread(target=call_at, args=arguments).start()
    until(lambda: len(server.calls) == 6)
    take_back_at(another_process, client)
    client.notify("notifications/cancelled", {"requestId": 7})
    take_back_at(another_process, client, 10)
    client.notify("notifications/cancelled", {"requestId": 11})
    until(lambda: {62, 63} <= set(server.cancelled))
    until(lambda: len(ended(tenant)) >= 4)
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
    until(lambda: len(server.calls) == 3)
    for request_id in (7, 8):  # what is sent last is heard last
        client.notify("notifications/cancelled", {"requestId": request_id})
    until(lambda: 61 in server.cancelled)
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
    until(lambda: server.calls)
    leaving.leave()
    until(lambda: server.cancelled)
    until(lambda: ended(tenant) == ["cancelled"])
    body = json.dumps({"arguments": {"seconds": 1}, "confirm": True}).encode()
    leaving = Leaving(path, {**headers, "Idempotency-Key": "once"}, body)
    until(lambda: len(server.calls) == 2)
    leaving.leave()
    until(lambda: sorted(ended(tenant)) == ["cancelled", "ok"])


def _make_member(tenant: Tenant) -> None:
    rows = Membership.objects.for_workspace(tenant.workspace)
    rows.filter(user=tenant.admin).update(role="member")


def _shut_out(tenant: Tenant) -> None:
    User.objects.filter(pk=tenant.admin.pk).update(is_active=False)


def _end_tokens(tenant: Tenant) -> None:
    ApiToken.objects.for_workspace(tenant.workspace).delete()


@pytest.mark.parametrize("end", [_make_member, _shut_out, _end_tokens])
def test_a_trial_ends_with_the_right_to_try(
    tenant: Tenant, watched: FullServer, silent: McpTool, end: Callable[[Tenant], None]
) -> None:
    """SEC-1200: what the server would have answered reaches nobody."""
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    body = json.dumps({"arguments": {"seconds": 60}, "confirm": True}).encode()
    trial = Leaving(f"/api/tools/{silent.pk}/test/", headers, body)
    until(lambda: watched.calls)
    end(tenant)
    detail = trial.answer()["errors"][0]
    assert (trial.status, detail["code"]) == (403, "access_ended")
    assert watched.cancelled == [60]
    assert ended(tenant) == ["cancelled"]


@pytest.mark.parametrize("kind", ["resource", "prompt", "prompt of a chat"])
def test_what_somebody_reads_ends_with_their_right(
    tenant: Tenant, watched: FullServer, silent: McpTool, kind: str
) -> None:
    """SEC-1200: as a tool does that an administrator tries; of a chat's prompt, once they may not enter any more."""
    begun = threading.Event()

    async def slow() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "late"

    watched.server.resource("memo://slow")(slow)
    watched.server.prompt()(slow)
    looked_at(tenant, silent.server)
    if kind == "resource":
        row = McpResource.objects.for_workspace(tenant.workspace).get(uri="memo://slow")
        path, body = f"/api/resources/{row.pk}/read_content/", b"{}"
    else:
        prompt = McpPrompt.objects.for_workspace(tenant.workspace).get(name="slow")
        path, body = f"/api/prompts/{prompt.pk}/fill/", b"{}"
    scope, end = "servers:write", _make_member
    if kind == "prompt of a chat":
        McpPrompt.objects.for_workspace(tenant.workspace).update(is_enabled=True)
        bud = Bud.objects.create(
            workspace=tenant.workspace, owner=tenant.admin, name="B", slug="b", takes_all_tools=True
        )
        path, body = (
            f"/api/buds/{bud.pk}/prompts/",
            json.dumps({"prompt_id": str(prompt.pk)}).encode(),
        )
        scope, end = "chat", _shut_out
    reading = Leaving(path, bearer(token_of(tenant, scope, role="admin")), body)
    assert begun.wait(PATIENCE)
    end(tenant)
    detail = reading.answer()["errors"][0]
    assert (reading.status, detail["code"]) == (403, "access_ended")


def test_a_trial_goes_on_while_its_administrator_may_try(
    tenant: Tenant, watched: FullServer, silent: McpTool
) -> None:
    """SEC-1200: with a token as in a browser, of a workspace's server."""
    headers = bearer(token_of(tenant, "servers:write", role="admin"))
    body = json.dumps({"arguments": {"seconds": 1}, "confirm": True}).encode()
    trial = Leaving(f"/api/tools/{silent.pk}/test/", headers, body)
    assert trial.answer()["outcome"] == "ok"


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
    until(lambda: len(server.calls) == 2)
    runtime.shutdown(0.1)
    answer = call.answer()
    assert (call.status, answer["id"]) == (200, 7)
    assert "restarted" in answer["error"]["message"]
    detail = trial.answer()["errors"][0]
    assert (trial.status, detail["code"]) == (503, "shutting_down")
    until(lambda: ended(tenant) == ["cancelled"] * 2)
    errors = [str(record.msg) for record in caplog.records if record.levelno >= logging.ERROR]
    assert not [error for error in errors if "/mcp/" in error]
