"""Each layer that can refuse a call, through each door: one entry of its own, and the server sees nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.urls import reverse
from uuid_utils.compat import uuid7

from audit.actions import Action, RefusedBy
from audit.models import AuditEntry
from audit.services.spool import replay
from chat.models import ToolCall
from chat.services.approvals import decide
from chat.values import Decision, ToolCallStatus
from mcp_servers.client.connections import calls
from mcp_servers.client.values import ResourceRequest
from mcp_servers.gate import BuiltinRequest, call_builtin, read_resource
from mcp_servers.models import (
    Approval,
    ApprovalOverride,
    CallCount,
    McpServer,
    McpTool,
    ServerScope,
)
from mcp_servers.registry.specs import connection_spec
from tests.chat.conftest import Chat
from tests.factories import Tenant
from tests.fakes.scripted_model import DONE, Answer, chunk, usage
from tests.mcp_servers.endpoint.client import McpClient, token_for
from tests.mcp_servers.factories import actor_of, tool_of
from tests.mcp_servers.gate.refused_entries import refusing_entries
from tests.patience import PATIENCE
from workspaces.actors import Source
from workspaces.errors import DomainError
from workspaces.models import Membership

Case = tuple[RefusedBy, str]


@dataclass(frozen=True, slots=True)
class World:
    """One workspace, one server, one conversation; every case leaves them as it found them."""

    chat: Chat
    tool: McpTool

    @property
    def tenant(self) -> Tenant:
        return self.chat.tenant

    @property
    def server(self) -> McpServer:
        return self.chat.row

    @contextmanager
    def changed(self, model: type[Any], pk: Any, **values: Any) -> Iterator[None]:
        """Give a row other values for a while, behind every service's back."""
        rows = model.objects.for_workspace(self.tenant.workspace).filter(pk=pk)
        before = rows.values(*values).get()
        rows.update(**values)
        try:
            yield
        finally:
            rows.update(**before)

    @contextmanager
    def no_member(self, role: str) -> Iterator[None]:
        rows = Membership.objects.for_workspace(self.tenant.workspace)
        row = rows.get(user=self.tenant.people[role])
        rows.filter(pk=row.pk).delete()
        try:
            yield
        finally:
            row.save(force_insert=True)

    @contextmanager
    def no_slot(self) -> Iterator[None]:
        """Every slot of the server is taken, and nobody waits for one."""
        config = {**self.server.connection_config, "queue_seconds": 0}
        slots = calls.slots_of(connection_spec(self.server))
        taken = 0
        while slots.try_take():
            taken += 1
        assert taken
        try:
            with self.changed(McpServer, self.server.pk, connection_config=config):
                yield
        finally:
            for _ in range(taken):
                slots.give_back()

    @contextmanager
    def no_quota(self) -> Iterator[None]:
        config = {**self.server.connection_config, "calls_per_day": 1}
        count = CallCount.objects.create(
            workspace=self.tenant.workspace,
            server_id=self.server.pk,
            day=datetime.now(UTC).date(),
            used=1,
        )
        try:
            with self.changed(McpServer, self.server.pk, connection_config=config):
                yield
        finally:
            count.delete()

    @contextmanager
    def no_log(self, action: Action = Action.TOOL_CALL_REQUESTED) -> Iterator[None]:
        """The log takes no *requested*; what was kept aside is entered afterwards."""
        with refusing_entries(action):
            yield
        replay()

    @contextmanager
    def broken(self) -> Iterator[None]:
        """The server failed a moment ago, and is left alone."""
        patch = pytest.MonkeyPatch()
        patch.setattr(calls, "wait_seconds", lambda spec: 30.0)
        try:
            yield
        finally:
            patch.undo()

    @contextmanager
    def of_somebody_else(self) -> Iterator[None]:
        person = {"scope": ServerScope.PERSONAL, "owner_id": self.tenant.owner.pk}
        with self.changed(McpServer, self.server.pk, **person):
            yield


def tool_row(**values: Any) -> Callable[[World], Any]:
    return lambda world: world.changed(McpTool, world.tool.pk, **values)


# What stands in the way, and by which rule the gate says so; the same behind every door that leads to a tool.
WAYS: dict[RefusedBy, tuple[str, Callable[[World], Any]]] = {
    RefusedBy.NOT_FOUND: ("tool.not_found", World.of_somebody_else),
    RefusedBy.DISABLED: ("tool.disabled", tool_row(is_enabled=False)),
    RefusedBy.QUARANTINE: ("tool.quarantined", tool_row(approved_hash="0" * 64)),
    RefusedBy.POLICY: ("tool.deny", tool_row(approval_override=ApprovalOverride.DENY)),
    RefusedBy.QUOTA: ("server.calls_per_day", World.no_quota),
    RefusedBy.BREAKER: ("server.backing_off", World.broken),
    RefusedBy.BUSY: ("server.busy", World.no_slot),
    RefusedBy.AUDIT: ("audit.unavailable", World.no_log),
}

NO_SERVER = "a built-in tool reaches no server"
NOT_THERE = "the row is not found before a call is made of it: 404, and no call to record"
NO_MODEL = {RefusedBy.SPENDING_LIMIT: "spending limits refuse requests to models, not calls"}
NOT_LISTED = (
    "the client is not told of the tool, so its name is unknown, and there is no call to record"
)
# Layers that a door cannot meet, and why.
UNREACHABLE: dict[str, dict[RefusedBy, str]] = {
    "chat": NO_MODEL,
    "api": {**NO_MODEL, RefusedBy.NOT_FOUND: NOT_THERE},
    "tester": {**NO_MODEL, RefusedBy.NOT_FOUND: NOT_THERE},
    "gateway": {
        **NO_MODEL,
        RefusedBy.NOT_FOUND: NOT_LISTED,
        RefusedBy.DISABLED: NOT_LISTED,
        RefusedBy.QUARANTINE: NOT_LISTED,
        RefusedBy.POLICY: NOT_LISTED,
        RefusedBy.PERMISSION: "the token of somebody who has left is no credential",
    },
    "read": {
        **NO_MODEL,
        RefusedBy.QUARANTINE: "a resource has no definition to accept",
        RefusedBy.APPROVAL: "reading asks nobody",
        RefusedBy.QUOTA: "the day's quota counts calls of tools",
    },
    "builtin": {
        **NO_MODEL,
        RefusedBy.NOT_FOUND: "a name that is not known is refused by the turn, as not offered",
        RefusedBy.QUARANTINE: NO_SERVER,
        RefusedBy.POLICY: NO_SERVER,
        RefusedBy.APPROVAL: "it asks nobody",
        RefusedBy.QUOTA: NO_SERVER,
        RefusedBy.BREAKER: NO_SERVER,
        RefusedBy.BUSY: NO_SERVER,
    },
}


@pytest.fixture
def world(chat: Chat) -> World:
    return World(chat, tool_of(chat.row, "echo"))


def refusals(world: World) -> list[AuditEntry]:
    rows = AuditEntry.objects.for_workspace(world.tenant.workspace)
    return list(rows.filter(action__endswith=".refused").exclude(call_id=None).order_by("pk"))


class Checker:
    """Runs the cases of one door, and looks at what each left behind."""

    def __init__(self, world: World, *, source: Source, person: Any, action: str) -> None:
        self._world, self._source, self._person, self._action = world, source, person, action
        self.seen: set[RefusedBy] = set()

    def check(self, layer: RefusedBy, rule: str, run: Callable[[], None]) -> AuditEntry:
        server = self._world.chat.server
        before, sent = len(refusals(self._world)), _sent(server)
        run()
        found = refusals(self._world)[before:]
        assert [(e.refused_by, e.rule) for e in found] == [(layer.value, rule)]
        (entry,) = found
        assert entry.action == self._action
        assert (entry.source, entry.actor_id) == (self._source.value, self._person.pk)
        assert entry.actor_label == self._person.email
        assert entry.call_id is not None
        assert entry.arguments_size, "SEC-246: the log does not say what was asked for"
        assert entry.arguments_preview
        assert entry.transport != "auto"
        steps = AuditEntry.objects.for_workspace(self._world.tenant.workspace)
        others = steps.filter(call_id=entry.call_id).exclude(pk=entry.pk)
        assert not others.filter(action__regex=r"(tool_call|resource_read)\.").exists()
        assert _sent(server) == sent, "the server was sent something"
        self.seen.add(layer)
        return entry

    def has_seen_all(self, door: str) -> None:
        assert self.seen | set(UNREACHABLE[door]) == set(RefusedBy)
        assert not self.seen & set(UNREACHABLE[door])


def _sent(server: Any) -> int:
    return sum(b"tools/call" in body or b"resources/read" in body for body in server.bodies)


def test_every_layer_has_a_case_or_a_reason_at_every_door() -> None:
    """SEC-101: a new layer, or a new door, must be thought of here."""
    own = {RefusedBy.APPROVAL, RefusedBy.ARGUMENTS, RefusedBy.PERMISSION}
    assert set(WAYS) | own | set(NO_MODEL) == set(RefusedBy)
    assert all(reason for reasons in UNREACHABLE.values() for reason in reasons.values())


def test_a_turns_calls(world: World) -> None:
    """SEC-57, SEC-101, SEC-104: what a model asks for in a conversation."""
    chat = world.chat
    checker = Checker(
        world, source=Source.CHAT, person=world.tenant.member, action="tool_call.refused"
    )

    def ask(name: str, arguments: Any, way: Callable[[World], Any] | None = None) -> None:
        hold = threading.Event()
        asked = [
            {
                "index": 0,
                "id": f"call_{uuid7()}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
        ]
        parts: list[bytes | threading.Event] = [
            chunk({"role": "assistant", "content": ""}),
            hold,
            chunk({"tool_calls": asked}),
            chunk({}, "tool_calls"),
            usage(),
            DONE,
        ]
        chat.model.give(Answer(parts))
        chat.model.say("Alas.")
        asked_before = len(chat.model.requests)
        with ExitStack() as stack:
            sent = chat.send(str(uuid7()))
            _until(lambda: len(chat.model.requests) > asked_before)
            if way is not None:
                stack.enter_context(way(world))
            hold.set()
            chat.watching.until(
                lambda event: (
                    event["type"] == "turn.changed"
                    and event["turn"]["id"] == str(sent.turn.pk)
                    and event["turn"]["status"] in {"completed", "failed"}
                )
            )
        chat.model.clear()

    for layer, (rule, way) in WAYS.items():
        checker.check(layer, rule, partial(ask, "counting__echo", {"text": "x"}, way))
    checker.check(
        RefusedBy.PERMISSION,
        "actor.forbidden",
        lambda: ask("counting__echo", {"text": "x"}, lambda w: w.no_member("member")),
    )
    checker.check(
        RefusedBy.ARGUMENTS, "arguments.schema", lambda: ask("counting__echo", {"text": 1})
    )
    entry = checker.check(
        RefusedBy.NOT_FOUND, "tool.not_offered", lambda: ask("counting__nope", {})
    )
    assert entry.tool_name == "counting__nope"
    entry = checker.check(
        RefusedBy.NOT_FOUND,
        "tool.not_offered",
        lambda: ask("counting__nope", {"path": "/etc/passwd", "password": "hunter2hunter2"}),
    )
    assert "/etc/passwd" in entry.arguments_preview
    assert "hunter2" not in entry.arguments_preview

    def use_up() -> None:
        chat.model.call(("counting__destroy", {"what": "all"}))
        chat.model.say("Alas.")
        chat.watching.forget()
        sent = chat.send("destroy it")
        chat.watching.turn("waiting_for_approval")
        (call,) = ToolCall.objects.for_workspace(world.tenant.workspace).filter(
            turn=sent.turn, status=ToolCallStatus.WAITING_FOR_APPROVAL.value
        )
        with transaction.atomic():
            decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
            granted = Approval.objects.for_workspace(world.tenant.workspace)
            granted.filter(call_id=call.pk).update(consumed_at=datetime.now(UTC))
        chat.watching.turn("completed")

    checker.check(RefusedBy.APPROVAL, "approval.used", use_up)
    checker.has_seen_all("chat")


def _until(is_so: Callable[[], bool]) -> None:
    async def wait() -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_so():
                await asyncio.sleep(0.005)

    asyncio.run(wait())


@pytest.mark.parametrize("door", ["api", "tester"])
def test_an_administrators_tries(world: World, door: str) -> None:
    """SEC-57, SEC-101, SEC-104: over REST, and on the page of the tool."""
    is_api = door == "api"
    checker = Checker(
        world,
        source=Source.API if is_api else Source.WEB,
        person=world.tenant.admin,
        action="tool_call.refused",
    )
    slug = world.tenant.workspace.slug
    clients = {role: world.tenant.client(role) for role in ("admin", "member")}

    for client in clients.values():
        client.raise_request_exception = False  # 503 is an answer as well

    def ask(tool: McpTool, arguments: Any, role: str = "admin") -> None:
        if is_api:
            answer = clients[role].post(
                f"/api/tools/{tool.pk}/test/",
                data=json.dumps({"arguments": arguments}),
                content_type="application/json",
                headers={"X-Workspace": slug},
            )
            assert answer.status_code in {403, 409, 422, 429, 503}, answer.content
            return
        url = reverse("mcp_servers:tool_try", args=[slug, world.server.pk, tool.pk])
        answer = clients[role].post(url, {"arguments": json.dumps(arguments)})
        assert answer.status_code in {200, 403}

    def stopped(way: Callable[[World], Any]) -> None:
        with way(world):
            ask(world.tool, {"text": "x"})

    for layer, (rule, way) in WAYS.items():
        if layer is not RefusedBy.NOT_FOUND:
            checker.check(layer, rule, partial(stopped, way))
    checker.check(RefusedBy.ARGUMENTS, "arguments.schema", lambda: ask(world.tool, {"text": 1}))
    destroy = tool_of(world.server, "destroy")
    rule = "hints.destructive"
    checker.check(RefusedBy.APPROVAL, rule, lambda: ask(destroy, {"what": "x"}))
    checker._person = world.tenant.member
    checker.check(
        RefusedBy.PERMISSION, "tester.forbidden", lambda: ask(world.tool, {"text": "x"}, "member")
    )
    checker.has_seen_all(door)


def test_another_mcp_clients_calls(world: World) -> None:
    """SEC-57, SEC-101, SEC-104, SEC-111: through the workspace's own endpoint; the client reads why, and nothing is sent."""
    checker = Checker(
        world, source=Source.GATEWAY, person=world.tenant.member, action="tool_call.refused"
    )
    client = McpClient(world.tenant, token_for(world.tenant))

    def ask(name: str, **arguments: Any) -> None:
        answer = client.call(f"counting__{name}", **arguments)
        assert answer["isError"]
        assert answer["content"][0]["text"]

    def stopped(way: Callable[[World], Any]) -> None:
        with way(world):
            ask("echo", text="x")

    for layer, (rule, way) in WAYS.items():
        if layer not in UNREACHABLE["gateway"]:
            checker.check(layer, rule, partial(stopped, way))
    checker.check(RefusedBy.ARGUMENTS, "arguments.schema", lambda: ask("echo", text=1))
    checker.check(RefusedBy.APPROVAL, "hints.destructive", lambda: ask("destroy", what="x"))
    checker.has_seen_all("gateway")


def test_reads_of_a_background_part(world: World) -> None:
    """SEC-57, SEC-101, SEC-104: resources are read for attachments, with no person waiting."""
    checker = Checker(
        world, source=Source.TASK, person=world.tenant.member, action="resource_read.refused"
    )
    actor = actor_of(world.tenant, "member", Source.TASK)

    def read(way: Callable[[World], Any] | None = None, uri: str = "note://one") -> None:
        request = ResourceRequest(
            call_id=uuid7(),
            workspace_id=world.tenant.workspace.pk,
            server_id=world.server.pk,
            uri=uri,
            actor=actor,
        )
        with ExitStack() as stack:
            if way is not None:
                stack.enter_context(way(world))
            with pytest.raises(DomainError):
                async_to_sync(read_resource)(request)

    def server_row(**values: Any) -> Callable[[World], Any]:
        return lambda w: w.changed(McpServer, w.server.pk, **values)

    ways: dict[RefusedBy, tuple[str, Callable[[World], Any]]] = {
        RefusedBy.NOT_FOUND: ("server.not_found", World.of_somebody_else),
        RefusedBy.DISABLED: ("server.inactive", server_row(is_active=False)),
        RefusedBy.POLICY: ("server.misconfigured", server_row(transport="stdio")),
        RefusedBy.PERMISSION: ("actor.forbidden", lambda w: w.no_member("member")),
        RefusedBy.BREAKER: WAYS[RefusedBy.BREAKER],
        RefusedBy.BUSY: WAYS[RefusedBy.BUSY],
        RefusedBy.AUDIT: (
            "audit.unavailable",
            lambda w: w.no_log(Action.RESOURCE_READ_REQUESTED),
        ),
    }
    for layer, (rule, way) in ways.items():
        checker.check(layer, rule, partial(read, way))
    checker.check(RefusedBy.ARGUMENTS, "resource.uri", lambda: read(uri=" "))
    checker.has_seen_all("read")


def test_built_in_tools(world: World) -> None:
    """SEC-57, SEC-101, SEC-104: what the platform does itself passes the same gate."""
    checker = Checker(
        world, source=Source.CHAT, person=world.tenant.member, action="tool_call.refused"
    )

    def call(arguments: Any, *, is_enabled: bool = True, way: Any = None) -> None:
        request = BuiltinRequest(
            call_id=uuid7(),
            workspace_id=world.tenant.workspace.pk,
            name="make_file",
            arguments=arguments,
            input_schema={"type": "object", "properties": {"name": {"type": "string"}}},
            actor=actor_of(world.tenant, "member"),
            is_enabled=is_enabled,
        )
        with ExitStack() as stack:
            if way is not None:
                stack.enter_context(way(world))
            with pytest.raises(DomainError):
                async_to_sync(call_builtin)(request, _never)

    good = {"name": "x"}
    checker.check(RefusedBy.DISABLED, "builtin.not_offered", lambda: call(good, is_enabled=False))
    checker.check(RefusedBy.ARGUMENTS, "arguments.schema", lambda: call({"name": 1}))
    checker.check(
        RefusedBy.PERMISSION,
        "actor.forbidden",
        lambda: call(good, way=lambda w: w.no_member("member")),
    )
    checker.check(RefusedBy.AUDIT, "audit.unavailable", lambda: call(good, way=World.no_log))
    checker.has_seen_all("builtin")


def _never() -> Any:
    raise AssertionError("it ran")
