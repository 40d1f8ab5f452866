"""One step: a request to the model, streamed, saved now and then, and committed with the calls it asks for."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from chat.artifacts.tools import TRANSFERS, find_target
from chat.engine import ledger
from chat.engine.context import LimitReached, read_context
from chat.engine.history import read_history
from chat.engine.leases import Lease
from chat.live import LiveText
from chat.models import Bud, Message, ToolCall, Turn
from chat.providers.base import AskedCall, Completion, CompletionRequest, ProviderSpec
from chat.providers.choosing import model_client, provider_for
from chat.providers.errors import ProviderError
from chat.toolset import OfferedTool, Toolset, resolve_toolset
from mcp_servers.canonical import canonical_json, parse_arguments
from mcp_servers.errors import InvalidArguments
from workspaces.actors import Actor
from workspaces.database import in_database
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission

SAVE_PARTIAL_SECONDS = 1.0
MOST_IDENTICAL_CALLS = 3
MOST_CALLS_IN_STEP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    """What one step needs, with today's rights and tools."""

    turn: Turn
    bud: Bud
    actor: Actor
    provider: ProviderSpec
    toolset: Toolset
    messages: Sequence[dict[str, Any]]
    earlier_calls: Counter[tuple[str, bytes]]


async def ask_model(lease: Lease, step: int) -> None:
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


async def _stream(task: StepTask, live: LiveText, seconds: float) -> Completion:
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


def _propose(task: StepTask, calls: Sequence[AskedCall]) -> list[ledger.ProposedCall]:
    """Look up what the model asks for in what it was offered; nothing else can be called."""
    proposals: list[ledger.ProposedCall] = []
    seen = Counter(task.earlier_calls)
    ids: set[str] = set()
    for position, call in enumerate(calls):
        tool = task.toolset.by_name.get(call.name)
        arguments: dict[str, Any] | None = None
        target: OfferedTool | None = None
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
                if tool.builtin in TRANSFERS:
                    found = find_target(task.toolset.tools, tool.builtin, arguments)
                    target, error = (None, found) if isinstance(found, str) else (found, "")
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
                target=target,
                error=error,
            )
        )
    return proposals


def _begin_step(lease: Lease, step: int) -> tuple[StepTask, Message]:
    """What the step needs, and the message that its answer goes into."""
    task = _read_task(lease, step)
    return task, ledger.start_step(lease, step)


def _read_task(lease: Lease, step: int) -> StepTask:
    """All that a step needs, with today's rights and tools."""
    task = read_context(lease)
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
    return StepTask(
        turn=turn,
        bud=task.bud,
        actor=task.actor,
        provider=provider_for(task.bud),
        toolset=toolset,
        messages=read_history(task.bud, turn, toolset.instructions),
        earlier_calls=_earlier_calls(turn) if step else Counter(),
    )


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
