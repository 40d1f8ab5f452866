"""The gate while the log cannot be written: nothing leaves, no result is handed on, and both are told later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, transaction
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from audit.services import EntryDraft, PreparedEntry, is_call_open, record
from audit.services.spool import replay, spool_size
from mcp_servers.client.errors import OutcomeNotRecorded
from mcp_servers.client.values import GateOutcome, Outcome, ResourceRequest, ToolCallRequest
from mcp_servers.gate import call_tool, read_resource
from mcp_servers.gate.caller import SilentCaller
from mcp_servers.models import McpServer
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import a_request, actor_of, tool_of
from tests.mcp_servers.gate.refused_entries import TABLE, refusing_entries
from tests.patience import PATIENCE
from tests.threads import Threads


class Lock:
    """Somebody holds the log's table, or all of SQLite, until told to let go."""

    def __init__(self) -> None:
        self._held, self._let_go = threading.Event(), threading.Event()
        self._threads = Threads()
        self._holding = self._threads.submit(self._hold)
        assert self._held.wait(PATIENCE)

    def _hold(self) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE")
            self._held.set()
            assert self._let_go.wait(120)

    def let_go(self) -> None:
        self._let_go.set()
        self._holding.result(PATIENCE)
        self._threads.shutdown()


def entries(tenant: Tenant) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).exclude(call_id=None).order_by("id")
    return list(rows.values_list("action", "refused_by", "outcome"))


async def request_for(tenant: Tenant, server: McpServer, name: str = "echo") -> ToolCallRequest:
    tool = await sync_to_async(tool_of)(server, name)
    return a_request(tenant, tool, {"text": "x"})


@pytest.mark.parametrize("way", ["a trigger that fails", "a commit that takes too long"])
async def test_a_call_that_cannot_be_recorded_is_refused_and_that_is_told_later(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, way: str
) -> None:
    """SEC-101: the server hears nothing; the refusal is entered once the log can be written; no call stays open."""
    request = await request_for(tenant, trusted)
    if way == "a trigger that fails":
        manager = refusing_entries(Action.TOOL_CALL_REQUESTED)
        await sync_to_async(manager.__enter__)()
        with pytest.raises(AuditUnavailable):
            await call_tool(request)
        await sync_to_async(manager.__exit__)(None, None, None)
    else:
        lock = await asyncio.to_thread(Lock)
        with pytest.raises(AuditUnavailable):
            await call_tool(request)  # the lock stands all the time: only the limit can end this
        await asyncio.to_thread(lock.let_go)
    assert counting.calls == []
    assert spool_size().files
    assert await sync_to_async(replay)() == 1
    found = await sync_to_async(entries)(tenant)
    assert ("tool_call.refused", "audit", "") in found
    assert not await sync_to_async(is_call_open)(tenant.workspace.pk, request.call_id)
    again = await call_tool(await request_for(tenant, trusted))  # and its slot was given back
    assert again.outcome == Outcome.OK


async def test_a_result_that_cannot_be_recorded_is_given_to_nobody_and_kept(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-102: the call has happened; how it ended is on the disk at once and in the log later."""
    monkeypatch.setattr("mcp_servers.gate.recording._ENTRY_PAUSE_SECONDS", 0.01)
    request = await request_for(tenant, trusted)
    manager = refusing_entries(Action.TOOL_CALL_FINISHED)
    await sync_to_async(manager.__enter__)()
    with pytest.raises(OutcomeNotRecorded):
        await call_tool(request)
    await sync_to_async(manager.__exit__)(None, None, None)
    assert counting.names() == ["echo"]
    assert await sync_to_async(entries)(tenant) == [("tool_call.requested", "", "")]
    assert await sync_to_async(replay)() == 1
    assert await sync_to_async(entries)(tenant) == [
        ("tool_call.requested", "", ""),
        ("tool_call.finished", "", "ok"),
    ]


async def test_an_end_whose_commit_only_seemed_to_fail_is_written_once(
    tenant: Tenant, trusted: McpServer, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-102: the line broke behind the commit; and a server's health that cannot be noted changes nothing."""
    monkeypatch.setattr("mcp_servers.gate.recording._ENTRY_PAUSE_SECONDS", 0.01)
    broken: list[AuditEntry] = []

    def break_behind(draft: EntryDraft | PreparedEntry) -> AuditEntry:
        entry = record(draft)
        if entry.action == Action.TOOL_CALL_FINISHED.value and not broken:
            broken.append(entry)
            raise AuditUnavailable
        return entry

    def fail(*_args: object) -> None:
        raise OperationalError("lock timeout")

    monkeypatch.setattr("mcp_servers.gate.operation.record", break_behind)
    monkeypatch.setattr("mcp_servers.registry.health.note_call", fail)
    request = await request_for(tenant, trusted)
    assert (await call_tool(request)).outcome == Outcome.OK
    assert broken
    again = await request_for(tenant, trusted)
    assert (await call_tool(again)).outcome == Outcome.OK
    ends = [entry for entry in await sync_to_async(entries)(tenant) if entry[2] == "ok"]
    assert len(ends) == 2


async def test_reading_a_resource_is_no_way_around(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-101: no entry, no read."""
    request = ResourceRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        server_id=trusted.pk,
        uri="note://one",
        actor=actor_of(tenant, "member"),
    )
    before = len(counting.bodies)
    manager = refusing_entries(Action.RESOURCE_READ_REQUESTED)
    await sync_to_async(manager.__enter__)()
    with pytest.raises(AuditUnavailable):
        await read_resource(request)
    await sync_to_async(manager.__exit__)(None, None, None)
    assert not any(b"resources/read" in body for body in counting.bodies[before:])
    assert await sync_to_async(replay)() == 1
    assert ("resource_read.refused", "audit", "") in await sync_to_async(entries)(tenant)


class StoringCaller(SilentCaller):
    """One that stores something of its own with each entry, or fails to."""

    def __init__(self, tenant: Tenant, *, fails_at: str = "") -> None:
        self._tenant = tenant
        self._fails_at = fails_at

    def letting_through(self) -> AbstractContextManager[None]:
        return self._storing("requested")

    def ending(self, outcome: GateOutcome) -> AbstractContextManager[None]:
        return self._storing("finished")

    @contextmanager
    def _storing(self, name: str) -> Iterator[None]:
        with transaction.atomic():
            workspace = self._tenant.workspace
            workspace.name = f"{name} of {workspace.slug}"
            workspace.save(update_fields=["name"])
            yield
            if name == self._fails_at:
                raise LookupError(name)

    def stored(self) -> str:
        """What the database has of it."""
        self._tenant.workspace.refresh_from_db()
        return self._tenant.workspace.name


async def test_entries_and_the_callers_rows_are_one_commit(
    tenant: Tenant, trusted: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-310: either both are stored or neither is; an entry that is refused takes the caller's rows with it."""
    monkeypatch.setattr("mcp_servers.gate.recording._ENTRY_PAUSE_SECONDS", 0.01)
    caller = StoringCaller(tenant)
    request = await request_for(tenant, trusted)
    before = await sync_to_async(caller.stored)()
    manager = refusing_entries(Action.TOOL_CALL_REQUESTED)
    await sync_to_async(manager.__enter__)()
    with pytest.raises(AuditUnavailable):
        await call_tool(request, caller=caller)
    await sync_to_async(manager.__exit__)(None, None, None)
    assert await sync_to_async(caller.stored)() == before
    request = await request_for(tenant, trusted)
    manager = refusing_entries(Action.TOOL_CALL_FINISHED)
    await sync_to_async(manager.__enter__)()
    with pytest.raises(OutcomeNotRecorded):
        await call_tool(request, caller=caller)
    await sync_to_async(manager.__exit__)(None, None, None)
    assert await sync_to_async(caller.stored)() == "requested of acme"


async def test_what_the_caller_cannot_store_keeps_nothing_out_of_the_log(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-310: a call whose start cannot be stored is not made; an end is written alone."""
    with pytest.raises(LookupError):
        await call_tool(
            await request_for(tenant, trusted),
            caller=StoringCaller(tenant, fails_at="requested"),
        )
    assert counting.calls == []
    assert await sync_to_async(entries)(tenant) == []
    caller = StoringCaller(tenant, fails_at="finished")
    outcome = await call_tool(await request_for(tenant, trusted), caller=caller)
    assert outcome.outcome is Outcome.OK
    written = await sync_to_async(entries)(tenant)
    assert [one[0] for one in written] == ["tool_call.requested", "tool_call.finished"]
    assert await sync_to_async(caller.stored)() == "requested of acme"
