"""The tool calls of one step, side by side through the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.utils.translation import gettext_noop as _

from chat.engine import calls, sandbox, steps, turns, waiting
from chat.engine.builtins import call_built_in
from chat.engine.caller import TurnCaller
from chat.engine.context import read_context
from chat.engine.identical import IdenticalResults
from chat.engine.leases import Lease
from chat.engine.requests import request_to_send
from chat.engine.rows import fetch_call
from chat.engine.turn_cache import TurnContext
from chat.models import ToolCall
from chat.values import ToolCallStatus
from mcp_servers.client.errors import (
    ApprovalMissing,
    ChangesRefused,
    InputMissing,
    InvalidArguments,
    OutcomeNotRecorded,
    ToolNotFound,
)
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate import call_tool
from workspaces.database import in_database
from workspaces.errors import DomainError

CALLS_SIDE_BY_SIDE = 8
LOOK_SECONDS = 1.0
"""How often a step with a waiting call is looked at for others that may begin."""

_GONE = _("This tool is no longer available: it or its server was removed.")
"""It was there when it was offered."""


async def call_tools(lease: Lease, call_ids: Sequence[UUID]) -> turns.Work | None:
    """Run a step's calls side by side; one that fails disturbs no other. Gives what follows, if that is known.

    While one of them waits in place for a person, those that were decided about meanwhile begin too.
    """
    limit = asyncio.Semaphore(CALLS_SIDE_BY_SIDE)
    results = IdenticalResults()
    callers: list[TurnCaller] = []

    async def run(call_id: UUID) -> None:
        async with limit:
            callers.append(TurnCaller(lease, call_id))
            await _call_one(lease, call_id, callers[-1], results)

    begun: list[asyncio.Task[None]] = []
    newest: dict[UUID, asyncio.Task[None]] = {}

    def begin(ready: Sequence[UUID]) -> None:
        for call_id in ready:
            # One that asked for approval has ended its first try, and may have its second.
            if call_id not in newest or newest[call_id].done():
                newest[call_id] = asyncio.create_task(run(call_id))
                begun.append(newest[call_id])

    begin(call_ids)
    try:
        while pending := [task for task in begun if not task.done()]:
            _, left = await asyncio.wait(pending, timeout=LOOK_SECONDS)
            if left and any(caller.is_waiting for caller in callers):
                begin(await in_database(waiting.decided_calls, lease))
    finally:
        for task in begun:
            task.cancel()
        ended = await asyncio.gather(*begun, return_exceptions=True)
        await _store_answer(lease)
    for failure in ended:
        if failure is not None:
            raise failure
    return next((one.following for one in callers if one.following is not None), None)


async def _call_one(
    lease: Lease, call_id: UUID, caller: TurnCaller, results: IdenticalResults
) -> None:
    """One call through the gate; whatever comes of it is committed."""
    call, task, request = await _begin(lease, call_id, caller)
    is_known = call.tool_id is not None or bool(call.builtin)
    if not is_known:
        await in_database(calls.refuse_call, lease, call_id, message="This tool is not available.")
        return
    try:
        if call.builtin:
            outcome = await call_built_in(lease, call, task, caller)
        else:
            assert request is not None
            try:
                outcome = await results.call_once(
                    call,
                    task.turn,
                    lambda known: call_tool(
                        replace(request, identical_result=known), caller=caller
                    ),
                )
            finally:
                # Refused, put before a person, or stopped: what the model said is stored before that is.
                await _store_answer(lease)
    except ApprovalMissing as missing:
        await in_database(_ask_or_refuse, lease, call_id, task, missing)
    except InputMissing:
        await in_database(waiting.park_call, lease, call_id, work_ms=caller.work_ms)
    except ChangesRefused as error:
        caller.following = await in_database(
            sandbox.answer_from_recording, lease, call_id, message=error.message
        )
    except OutcomeNotRecorded as error:
        await in_database(calls.lose_call, lease, call_id, message=error.message)
    except InvalidArguments as error:
        await in_database(calls.refuse_call, lease, call_id, message=error.message, is_fault=True)
    except DomainError as error:
        message = _GONE if isinstance(error, ToolNotFound) else error.message
        await in_database(calls.refuse_call, lease, call_id, message=message)
    else:
        if not caller.has_ended:
            caller.following = await in_database(
                calls.finish_call, lease, call_id, outcome, work_ms=caller.work_ms
            )


def _ask_or_refuse(
    lease: Lease, call_id: UUID, task: TurnContext, missing: ApprovalMissing
) -> None:
    """Put a call before a person; nobody looks at a check while it runs, so there it is refused."""
    if task.bud.is_sandboxed:
        calls.refuse_call(lease, call_id, message=missing.message)
    else:
        waiting.ask_for_approval(lease, call_id, missing.decision)


async def _store_answer(lease: Lease) -> None:
    """Have it stored what the model said, unless it is."""
    if lease.carried.unstored is not None:
        await asyncio.shield(in_database(steps.store_answer, lease))


async def _begin(
    lease: Lease, call_id: UUID, caller: TurnCaller
) -> tuple[ToolCall, TurnContext, ToolCallRequest | None]:
    """What the call needs, with the request if it is a server's."""
    if _looks_further_back(lease):
        begun = await in_database(_begin_at_once, lease, caller)
    else:
        begun = _begin_at_once(lease, caller)
    if begun is None:
        begun = await in_database(_begin_from_rows, lease, call_id, caller)
    return begun


def _looks_further_back(lease: Lease) -> bool:
    """Whether what the person has named or approved is to be looked for in what was not read for the model."""
    unstored, past = lease.carried.unstored, lease.carried.past
    if unstored is None or past is None:
        return False
    return unstored.context.turn.has_read_untrusted and not past.is_all


def _begin_at_once(
    lease: Lease, caller: TurnCaller
) -> tuple[ToolCall, TurnContext, ToolCallRequest | None] | None:
    """The same for the call of an answer that is stored with it; None: the rows have to be read."""
    unstored, past = lease.carried.unstored, lease.carried.past
    # A token may have been revoked meanwhile; whether the person is still a member, the gate asks.
    if unstored is None or past is None or unstored.context.turn.token_id is not None:
        return None
    caller.shares_commits = True
    call, task = unstored.call, unstored.context
    return call, task, request_to_send(call, task.turn, task.bud, task.actor, past=past)


def _begin_from_rows(
    lease: Lease, call_id: UUID, caller: TurnCaller
) -> tuple[ToolCall, TurnContext, ToolCallRequest | None]:
    """The same for any other.

    One that goes on, or that is no server's, is marked as running already here.
    """
    steps.store_answer(lease)
    call = fetch_call(lease.workspace_id, call_id)
    caller.shares_commits = (
        call.status == ToolCallStatus.QUEUED
        and call.tool_id is not None
        and not call.builtin
        and call.checkpoint is None
    )
    if not caller.shares_commits:
        call = calls.start_call(lease, call_id)
    task = read_context(lease)
    if call.tool_id is None or call.builtin:
        return call, task, None
    return call, task, request_to_send(call, task.turn, task.bud, task.actor)
