"""The calls of the self-check: through which door, and what the log has to say of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from uuid_utils.compat import uuid7

from audit.actions import RefusedBy
from mcp_servers.client.values import (
    Outcome,
    ResourceRequest,
    TextPart,
    ToolCallOutcome,
    ToolCallRequest,
)
from mcp_servers.gate import BuiltinRequest, call_builtin, call_tool, read_resource, tester
from workspaces.actors import Source
from workspaces.database import wait_for

if TYPE_CHECKING:
    from mcp_servers.gate.selfcheck.ground import Ground

_BUILTIN_SCHEMA = {"type": "object", "properties": {"case": {"type": "string"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call whose fate is known beforehand."""

    name: str
    """Also its only argument, so that the server can tell which calls it saw."""
    source: Source
    kind: str
    """tool_call or resource_read."""
    run: Callable[[], object]
    refused_by: RefusedBy | None = None
    """None: it is let through."""
    rule: str = ""
    reaches_server: bool = True
    is_stranger: bool = False


def cases(ground: Ground) -> Iterator[Case]:
    """Each door with a call that is let through, and one for each reason it can meet without harm."""
    for door, source in (
        ("conversation", Source.CHAT),
        ("gateway", Source.GATEWAY),
        ("command", Source.COMMAND),
        ("task", Source.TASK),
    ):
        yield from _refusable(ground, door, source, _through_gate)
    for door, source in (("REST", Source.API), ("tool's page", Source.WEB)):
        yield from _refusable(ground, door, source, _through_tester)
    yield from _reads(ground)
    yield from _builtins(ground)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One call of a tool, before it is known through which door."""

    tool: str
    arguments: Any
    tool_id: UUID | None = None
    is_stranger: bool = False


def _refusable(
    ground: Ground, door: str, source: Source, run: Callable[[Ground, Source, _Wanted], object]
) -> Iterator[Case]:
    def case(what: str, tool: str, arguments: Any = None, **fields: Any) -> Case:
        name = f"{door}, {what}"
        wanted = _Wanted(
            tool=tool,
            arguments=arguments if arguments is not None else {"case": name},
            tool_id=fields.pop("tool_id", None),
            is_stranger=fields.get("is_stranger", False),
        )
        return Case(
            name=name,
            source=source,
            kind="tool_call",
            run=lambda: run(ground, source, wanted),
            **fields,
        )

    yield case("allowed", "echo")
    yield case("switched off", "off", refused_by=RefusedBy.DISABLED, rule="tool.disabled")
    unfit = {"refused_by": RefusedBy.ARGUMENTS, "rule": "arguments.schema"}
    yield case("unfit arguments", "echo", {"case": 1}, **unfit)
    unasked = {"refused_by": RefusedBy.APPROVAL, "rule": "hints.destructive"}
    yield case("nobody approved", "destroy", **unasked)
    is_tester = run is _through_tester
    rule = "tester.forbidden" if is_tester else "actor.forbidden"
    yield case("stranger", "echo", refused_by=RefusedBy.PERMISSION, rule=rule, is_stranger=True)
    if not is_tester:
        unknown = {"refused_by": RefusedBy.NOT_FOUND, "rule": "tool.not_found"}
        yield case("unknown tool", "echo", tool_id=uuid7(), **unknown)


def _through_gate(ground: Ground, source: Source, wanted: _Wanted) -> object:
    request = ToolCallRequest(
        call_id=uuid7(),
        workspace_id=ground.workspace.pk,
        tool_id=wanted.tool_id or ground.tools[wanted.tool].pk,
        arguments=wanted.arguments,
        actor=ground.actor(source, is_stranger=wanted.is_stranger),
    )
    return wait_for(call_tool, request)


def _through_tester(ground: Ground, source: Source, wanted: _Wanted) -> object:
    return tester.try_tool(
        tool=ground.tools[wanted.tool],
        arguments=wanted.arguments,
        actor=ground.actor(source, is_stranger=wanted.is_stranger),
    )


def _reads(ground: Ground) -> Iterator[Case]:
    def read(case: str, *, uri: str | None = None, is_stranger: bool = False) -> object:
        request = ResourceRequest(
            call_id=uuid7(),
            workspace_id=ground.workspace.pk,
            server_id=ground.server.pk,
            uri=f"selfcheck://{case}" if uri is None else uri,
            actor=ground.actor(Source.TASK, is_stranger=is_stranger),
        )
        return wait_for(read_resource, request)

    base = Case(name="read", source=Source.TASK, kind="resource_read", run=lambda: read("read"))
    yield base
    yield replace(
        base,
        name="read, bad address",
        run=lambda: read("", uri=" "),
        refused_by=RefusedBy.ARGUMENTS,
        rule="resource.uri",
    )
    yield replace(
        base,
        name="read, stranger",
        run=lambda: read("stranger", is_stranger=True),
        refused_by=RefusedBy.PERMISSION,
        rule="actor.forbidden",
        is_stranger=True,
    )


def _builtins(ground: Ground) -> Iterator[Case]:
    def call(arguments: Any, *, is_enabled: bool = True) -> object:
        request = BuiltinRequest(
            call_id=uuid7(),
            workspace_id=ground.workspace.pk,
            name="selfcheck",
            arguments=arguments,
            input_schema=_BUILTIN_SCHEMA,
            actor=ground.actor(Source.CHAT),
            is_enabled=is_enabled,
        )
        outcome = ToolCallOutcome(outcome=Outcome.OK, content=(TextPart(text="done"),))
        return wait_for(call_builtin, request, lambda: outcome)

    base = Case(
        name="built-in tool",
        source=Source.CHAT,
        kind="tool_call",
        run=lambda: call({"case": "built-in tool"}),
        reaches_server=False,
    )
    yield base
    yield replace(
        base,
        name="built-in tool, not offered",
        run=lambda: call({}, is_enabled=False),
        refused_by=RefusedBy.DISABLED,
        rule="builtin.not_offered",
    )
    yield replace(
        base,
        name="built-in tool, unfit arguments",
        run=lambda: call({"case": 1}),
        refused_by=RefusedBy.ARGUMENTS,
        rule="arguments.schema",
    )
