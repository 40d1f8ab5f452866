"""Sends what only the gate may send: calls, resource reads, prompt fetches, and what follows from them.

Only the gate may import this module; the import rules hold that. Everything here may be awaited on any event loop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mcp_servers.client.connections import runtime, server_tasks
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.flights import CURRENT, CallRef
from mcp_servers.client.connections.permits import CallPermit
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.connections.requests import continued_parameters, perform, send
from mcp_servers.client.connections.tap import is_modern
from mcp_servers.client.inputs import (
    CallLimits,
    CallListener,
    InputAnswers,
    InputRequired,
    TaskStarted,
)
from mcp_servers.client.sdk import mcp_types, shapes

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.connections.slots import FairSlots
    from mcp_servers.client.spec import ConnectionSpec


def slots_of(spec: ConnectionSpec) -> FairSlots:
    """The server's slots for calls, whoever's credentials they use."""
    return pool.slots(spec)


def transport_of(spec: ConnectionSpec) -> str:
    """The transport that reaches a server, as in the log; empty as long as none has."""
    return pool.transport_of(spec)


def wait_seconds(spec: ConnectionSpec) -> float:
    """How long the server is still left alone after failures; 0 if it may be called, infinite if not unasked."""
    return pool.wait_seconds(spec)


def mint_permit(
    *,
    call_id: UUID,
    server_id: UUID,
    tool_name: str,
    arguments: bytes,
    user_id: UUID | None = None,
) -> CallPermit:
    """The right to send one call, once; only after its *requested* entry is committed."""
    return CallPermit(
        call_id=call_id,
        server_id=server_id,
        tool_name=tool_name,
        arguments=arguments,
        user_id=user_id,
    )


async def send_call(
    spec: ConnectionSpec,
    permit: CallPermit,
    *,
    limits: CallLimits,
    listener: CallListener | None = None,
    answers: InputAnswers | None = None,
    as_task: bool = False,
) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
    """Send one tools/call, once; the caller holds a slot, and decides whether it is sent again.

    Args:
        listener: hears of progress, and answers what the server asks meanwhile; called on the connections' loop.
        answers: what an earlier round of this call asked for.
        as_task: have the server make it a task, if it can; otherwise it is an ordinary call.

    Raises:
        PermitRefused: the gate did not allow exactly this call, or it was sent before.
        ConnectionFailed, Busy: nothing was sent.
        CallFailed, RpcError: it was sent, or may have been; see failures.NOT_CARRIED_OUT.
        TimeoutError: no answer within the limits; the server was told to stop.
    Source: MCP specification, "Tools": Calling Tools; "Tasks".
    """
    permit.spend(server_id=spec.server_id)
    call = CallRef(call_id=permit.call_id, user_id=permit.user_id, listener=listener, permit=permit)

    async def ask(connection: Connection, session: ClientSession) -> Any:
        params = {
            "name": permit.tool_name,
            "arguments": json.loads(permit.arguments),
            **_continued(connection, answers),
        }
        if as_task and server_tasks.takes_task_parameter(connection):
            params["task"] = {"ttl": round(limits.hard_seconds * 1000)}
        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams.model_validate(params, by_name=False)
        )
        result = await send(session, request, shapes.TOOL_RESULT)
        flight = CURRENT.get()
        if flight is not None and flight.task_result is not None:
            return server_tasks.started(flight.task_result)
        return result

    result = await runtime.run(
        perform(spec, ask, limits=limits, call=call, as_task=as_task, needs_headers=True)
    )
    assert isinstance(result, mcp_types.CallToolResult | InputRequired | TaskStarted)
    return result


async def read_resource(
    spec: ConnectionSpec,
    uri: str,
    *,
    limits: CallLimits,
    call_id: UUID | None = None,
    user_id: UUID | None = None,
    listener: CallListener | None = None,
    answers: InputAnswers | None = None,
) -> mcp_types.ReadResourceResult | InputRequired:
    """Read one resource. Raises as send_call().

    Source: MCP specification, "Resources": Reading Resources.
    """

    async def ask(connection: Connection, session: ClientSession) -> Any:
        params = {"uri": uri, **_continued(connection, answers)}
        request = mcp_types.ReadResourceRequest(
            params=mcp_types.ReadResourceRequestParams.model_validate(params, by_name=False)
        )
        return await send(session, request, shapes.RESOURCE_RESULT)

    call = CallRef(call_id=call_id, user_id=user_id, listener=listener)
    result = await runtime.run(perform(spec, ask, limits=limits, call=call))
    assert isinstance(result, mcp_types.ReadResourceResult | InputRequired)
    return result


async def get_prompt(
    spec: ConnectionSpec,
    name: str,
    arguments: Mapping[str, str],
    *,
    limits: CallLimits,
    call_id: UUID | None = None,
    user_id: UUID | None = None,
    listener: CallListener | None = None,
    answers: InputAnswers | None = None,
) -> mcp_types.GetPromptResult | InputRequired:
    """Fetch one prompt, filled in. Raises as send_call().

    Source: MCP specification, "Prompts": Getting a Prompt.
    """

    async def ask(connection: Connection, session: ClientSession) -> Any:
        params = {
            "name": name,
            "arguments": dict(arguments) or None,
            **_continued(connection, answers),
        }
        request = mcp_types.GetPromptRequest(
            params=mcp_types.GetPromptRequestParams.model_validate(params, by_name=False)
        )
        return await send(session, request, shapes.PROMPT_RESULT)

    call = CallRef(call_id=call_id, user_id=user_id, listener=listener)
    result = await runtime.run(perform(spec, ask, limits=limits, call=call))
    assert isinstance(result, mcp_types.GetPromptResult | InputRequired)
    return result


async def follow_task(
    spec: ConnectionSpec,
    task_id: str,
    *,
    limits: CallLimits,
    call_id: UUID | None = None,
    user_id: UUID | None = None,
    listener: CallListener | None = None,
) -> mcp_types.CallToolResult:
    """Wait for a task to end, from whatever process; what it came to.

    Args:
        limits: each sign that the task goes on counts as progress.

    Raises:
        CallFailed: task_gone, task_failed, task_cancelled; and as send_call().
    """
    call = CallRef(call_id=call_id, user_id=user_id, listener=listener)
    return await runtime.run(server_tasks.follow(spec, task_id, limits=limits, call=call))


async def cancel_task(spec: ConnectionSpec, task_id: str) -> None:
    """Ask the server to give a task up; harmless if it has ended.

    Raises:
        CallFailed: task_gone; and as send_call().
    """
    await runtime.run(server_tasks.cancel(spec, task_id))


def _continued(connection: Connection, answers: InputAnswers | None) -> dict[str, Any]:
    facts = connection.facts
    if facts is None:
        raise CallFailed("closed")
    return continued_parameters(answers, is_modern=is_modern(facts.protocol_revision))
