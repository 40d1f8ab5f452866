"""A turn, readable from top to bottom.

The rows say what comes next; each finished step and each result is committed before the next thing
begins. So a turn may stop at any line here, and go on in another process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from chat.engine import ledger, waiting
from chat.engine.attachments import read_attachments
from chat.engine.history import read_history
from chat.engine.leases import Lease
from chat.engine.port import TurnPort
from chat.engine.requests import actor_of, request_of
from chat.live import LiveText
from chat.models import Bud, Conversation, Message, ToolCall, Turn
from chat.providers.base import AskedCall, Completion, CompletionRequest, ProviderSpec
from chat.providers.choosing import model_client, provider_for
from chat.providers.errors import ProviderError
from chat.toolset import Toolset, resolve_toolset
from chat.values import TurnStatus
from mcp_servers.canonical import canonical_json, parse_arguments
from mcp_servers.errors import (
    ApprovalMissing,
    InputMissing,
    InvalidArguments,
    OutcomeNotRecorded,
)
from mcp_servers.gate import call_tool
from workspaces.actors import Actor
from workspaces.database import in_database
from workspaces.errors import DomainError, PermissionDenied
from workspaces.roles import Permission, has_permission

logger = logging.getLogger(__name__)

SAVE_PARTIAL_SECONDS = 1.0
CALLS_SIDE_BY_SIDE = 8
LOOK_SECONDS = 1.0
"""How often a step with a waiting call is looked at for others that may begin."""
MOST_IDENTICAL_CALLS = 3
MOST_CALLS_IN_STEP = 32


class LimitReached(DomainError):
    """The turn has used up one of its limits."""

    code = "limit_reached"
    status = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a turn needs to know beside its ledger; read anew for each step."""

    turn: Turn
    bud: Bud
    actor: Actor
    provider: ProviderSpec
    toolset: Toolset
    messages: Sequence[dict[str, Any]]
    earlier_calls: Counter[tuple[str, bytes]]


async def run_turn(lease: Lease, work: ledger.Work) -> None:
    """Work on a turn until it ends or waits for a person, beginning with `work`.

    Raises:
        LeaseLost: another process has it now.
        asyncio.CancelledError: it was stopped, or the process is going away; the caller settles which.
    """
    try:
        while True:
            match work:
                case ledger.ReadAttachments(ids):
                    reader = await in_database(_read_call_task, lease)
                    await read_attachments(lease, ids, actor=reader.actor, bud=reader.bud)
                case ledger.AskModel(step):
                    await _ask_model(lease, step)
                case ledger.CallTools(call_ids):
                    await _call_tools(lease, call_ids)
                case ledger.WaitForPeople():
                    if await in_database(waiting.park, lease):
                        return
                case ledger.Complete():
                    await in_database(ledger.finish, lease, TurnStatus.COMPLETED)
                    return
            work = await in_database(ledger.next_work, lease)
    except ProviderError as error:
        logger.info("turn_failed", extra={"code": error.code, **error.details})
        await _fail(lease, error, can_retry=error.can_retry)
    except (LimitReached, PermissionDenied) as error:
        await _fail(lease, error, can_retry=False)


async def _fail(lease: Lease, error: DomainError, *, can_retry: bool) -> None:
    await in_database(
        ledger.finish,
        lease,
        TurnStatus.FAILED,
        error_code=error.code,
        error_message=error.message,
        can_retry=can_retry,
    )


async def _ask_model(lease: Lease, step: int) -> None:
    """One request to the model: streamed, saved now and then, and committed with the calls it asks for."""
    task, message = await in_database(_begin_step, lease, step)
    live = LiveText(lease.conversation_id, message.pk)
    started = time.monotonic()
    saver = asyncio.create_task(_save_now_and_then(lease, message.pk, live))
    try:
        completion = await _stream(task, live, _seconds_left(task.turn))
        live.flush()
        await in_database(
            ledger.finish_step,
            lease,
            message.pk,
            text=completion.text,
            proposals=_propose(task, completion.calls),
            usage=ledger.Usage(
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
            ),
            model=task.provider.model,
            work_ms=_since(started),
        )
    except (ProviderError, LimitReached):
        live.flush()
        await in_database(
            ledger.fail_step, lease, message.pk, text=live.text, work_ms=_since(started)
        )
        raise
    except asyncio.CancelledError:
        # The row keeps what was said; whoever settles the turn decides what becomes of it.
        await asyncio.shield(in_database(ledger.save_partial, lease, message.pk, live.text))
        raise
    finally:
        saver.cancel()
        live.close()


async def _stream(task: Task, live: LiveText, seconds: float) -> Completion:
    request = CompletionRequest(
        model=task.provider.model,
        messages=task.messages,
        tools=[tool.as_function() for tool in task.toolset.tools],
        tool_choice=task.toolset.choice_for_model(),
        parameters=task.bud.model_parameters.model_dump(exclude_none=True),
    )
    try:
        async with asyncio.timeout(seconds):
            async for piece in model_client(task.provider).stream(request):
                if isinstance(piece, Completion):
                    return piece
                live.append(piece.text)
    except TimeoutError as error:
        raise LimitReached("This turn has taken too long, and was ended.") from error
    raise ProviderError


async def _save_now_and_then(lease: Lease, message_id: UUID, live: LiveText) -> None:
    saved = ""
    while True:
        await asyncio.sleep(SAVE_PARTIAL_SECONDS)
        text = live.text
        if text != saved:
            await in_database(ledger.save_partial, lease, message_id, text)
            live.mark_saved(text)
            saved = text


async def _call_tools(lease: Lease, call_ids: Sequence[UUID]) -> None:
    """Run a step's calls side by side; one that fails disturbs no other.

    While one of them waits in place for a person, those that were decided about meanwhile begin too.
    """
    limit = asyncio.Semaphore(CALLS_SIDE_BY_SIDE)
    ports: list[TurnPort] = []

    async def run(call_id: UUID) -> None:
        async with limit:
            ports.append(TurnPort(lease, call_id))
            await _call_one(lease, call_id, ports[-1])

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
            if left and any(port.is_waiting for port in ports):
                begin(await in_database(waiting.decided_calls, lease))
    finally:
        for task in begun:
            task.cancel()
        ended = await asyncio.gather(*begun, return_exceptions=True)
    for failure in ended:
        if failure is not None:
            raise failure


async def _call_one(lease: Lease, call_id: UUID, port: TurnPort) -> None:
    """One call through the gate; whatever comes of it is committed."""
    call = await in_database(ledger.start_call, lease, call_id)
    task = await in_database(_read_call_task, lease)
    if call.tool_id is None or not has_permission(task.actor, Permission.USE_CHAT):
        await in_database(ledger.refuse_call, lease, call_id, message="This tool is not available.")
        return
    request = request_of(call, task.turn, task.bud, task.actor)
    try:
        outcome = await call_tool(request, port=port)
    except ApprovalMissing as missing:
        await in_database(
            waiting.ask_for_approval,
            lease,
            call_id,
            rule=missing.decision.rule,
            reason=missing.decision.reason,
        )
    except InputMissing:
        await in_database(waiting.park_call, lease, call_id, work_ms=port.work_ms)
    except OutcomeNotRecorded as error:
        await in_database(ledger.lose_call, lease, call_id, message=error.message)
    except InvalidArguments as error:
        await in_database(ledger.refuse_call, lease, call_id, message=error.message, is_fault=True)
    except DomainError as error:
        await in_database(ledger.refuse_call, lease, call_id, message=error.message)
    else:
        await in_database(ledger.finish_call, lease, call_id, outcome, work_ms=port.work_ms)


def _propose(task: Task, calls: Sequence[AskedCall]) -> list[ledger.ProposedCall]:
    """Look up what the model asks for in what it was offered; nothing else can be called."""
    proposals: list[ledger.ProposedCall] = []
    seen = Counter(task.earlier_calls)
    ids: set[str] = set()
    for position, call in enumerate(calls):
        tool = task.toolset.by_name.get(call.name)
        arguments: dict[str, Any] | None = None
        error = ""
        if tool is None:
            error = f"There is no tool named {call.name!r} here."
        elif position >= MOST_CALLS_IN_STEP:
            error = f"More than {MOST_CALLS_IN_STEP} calls in one step."
        else:
            try:
                arguments = parse_arguments(call.arguments)
            except InvalidArguments as fault:
                schema = json.dumps(tool.input_schema)[:2000]
                error = f"{fault.message} The arguments must fit this schema: {schema}"
            else:
                identity = (tool.function_name, canonical_json(arguments))
                seen[identity] += 1
                if seen[identity] > MOST_IDENTICAL_CALLS:
                    raise LimitReached(
                        f"The model kept making the same call to {tool.full_name}, and was stopped."
                    )
        # Some servers repeat ids; within a step they have to differ.
        call_id = call.id if call.id not in ids else f"{call.id}_{position}"
        ids.add(call_id)
        proposals.append(
            ledger.ProposedCall(
                provider_call_id=call_id[:200],
                function_name=call.name[:200],
                arguments_text=call.arguments if arguments is not None else "{}",
                arguments=arguments,
                tool=tool,
                error=error,
            )
        )
    return proposals


def _begin_step(lease: Lease, step: int) -> tuple[Task, Message]:
    """What the step needs, and the message that its answer goes into."""
    task = _read_task(lease, step)
    return task, ledger.start_step(lease, step)


def _read_task(lease: Lease, step: int) -> Task:
    """All that a step needs, with today's rights and tools."""
    task = _read_call_task(lease)
    config = settings.TRELLIS
    turn = task.turn
    if step >= config.turn_max_steps:
        raise LimitReached(f"This turn has reached its limit of {config.turn_max_steps} steps.")
    if turn.prompt_tokens + turn.completion_tokens >= config.turn_max_tokens:
        raise LimitReached("This turn has reached its limit of tokens.")
    if not has_permission(task.actor, Permission.USE_CHAT, workspace_id=lease.workspace_id):
        raise PermissionDenied("You no longer have access to this workspace.")
    toolset = resolve_toolset(task.bud, turn.conversation)
    if toolset.notices and turn.notice != " ".join(toolset.notices):
        Turn.objects.for_workspace(lease.workspace_id).filter(pk=turn.pk).update(
            notice=" ".join(toolset.notices)
        )
    return Task(
        turn=turn,
        bud=task.bud,
        actor=task.actor,
        provider=provider_for(task.bud),
        toolset=toolset,
        messages=read_history(task.bud, turn, toolset.instructions),
        earlier_calls=_earlier_calls(turn) if step else Counter(),
    )


@dataclass(frozen=True, slots=True)
class CallTask:
    turn: Turn
    bud: Bud
    actor: Actor


def _read_call_task(lease: Lease) -> CallTask:
    turn = (
        Turn.objects.for_workspace(lease.workspace_id)
        .select_related("conversation__bud__provider", "asked_by", "workspace")
        .fetch(lease.turn_id)
    )
    conversation: Conversation = turn.conversation
    return CallTask(turn, conversation.bud, actor_of(turn))


def _earlier_calls(turn: Turn) -> Counter[tuple[str, bytes]]:
    calls = ToolCall.objects.for_workspace(turn.workspace_id).filter(turn=turn)
    return Counter(
        (name, canonical_json(arguments))
        for name, arguments in calls.values_list("function_name", "proposed_arguments")
    )


def _seconds_left(turn: Turn) -> float:
    left = settings.TRELLIS.turn_max_seconds - turn.work_ms / 1000
    if left <= 0:
        raise LimitReached("This turn has taken too long, and was ended.")
    return float(left)


def _since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
