"""One step: a request to the model, streamed, saved now and then, and committed with the calls it asks for."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.conf import settings

from chat.engine import ledger
from chat.engine.context import LimitReached, read_context
from chat.engine.context_window import Fitted, Window, estimate, fit
from chat.engine.counting import believed_usage
from chat.engine.fenced import unfenced
from chat.engine.history import read_history
from chat.engine.leases import Lease
from chat.engine.prompting import (
    fenced_messages,
    native_messages,
    with_instructions,
)
from chat.engine.proposals import EarlierCalls, propose, read_earlier
from chat.live import LiveText, Said
from chat.models import Bud, Message, Turn
from chat.providers import finish_reasons
from chat.providers.base import (
    Completion,
    CompletionRequest,
    ProviderSpec,
    ReasoningPiece,
    TextPiece,
    TokenCount,
)
from chat.providers.choosing import model_client, provider_for
from chat.providers.errors import (
    ContextTooLong,
    ProviderError,
    QuestionTooLong,
    ToolsRefused,
)
from chat.providers.known_models import ModelFacts, known_facts, learn_context, learn_protocol
from chat.toolset import Toolset, resolve_toolset
from chat.values import ToolProtocol
from mcp_servers.gate.port import Standing
from workspaces.actors import Actor
from workspaces.database import in_database
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission

logger = logging.getLogger(__name__)

SAVE_PARTIAL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    """What one step needs, with today's rights and tools."""

    turn: Turn
    bud: Bud
    actor: Actor
    step: int
    provider: ProviderSpec
    facts: ModelFacts
    protocol: ToolProtocol
    toolset: Toolset
    prompt: str
    fitted: Fitted
    earlier: EarlierCalls

    @property
    def notices(self) -> tuple[str, ...]:
        """What the person should know of what is sent."""
        return tuple(part for part in (*self.toolset.notices, self.fitted.notice) if part)

    @property
    def is_fenced(self) -> bool:
        """Whether the model is told of tools in words."""
        return self.protocol is ToolProtocol.FENCED_JSON


@dataclass(slots=True)
class _Attempt:
    """What is known so far of a request under way."""

    started: float
    usage: TokenCount | None = None

    def answer(self, task: StepTask, said: Said) -> ledger.AnsweredStep:
        """What came of it, if nothing more comes."""
        believed = believed_usage(task.fitted.tokens, said.text + said.reasoning)
        return ledger.AnsweredStep(
            text=said.text,
            reasoning=said.reasoning,
            usage=self.usage or believed,
            prices=task.facts.prices,
            work_ms=int((time.monotonic() - self.started) * 1000),
            model=task.provider.model,
        )


async def ask_model(lease: Lease, step: int) -> None:
    """One request to the model: streamed, saved now and then, and committed with the calls it asks for."""
    task, message = await in_database(_begin_step, lease, step)
    live = LiveText(lease.conversation_id, message.pk, lambda: lease.standing() is Standing.OURS)
    attempt = _Attempt(time.monotonic())
    saver = asyncio.create_task(_save_now_and_then(lease, message.pk, live))
    try:
        completion = await _answer(task, live, attempt)
        live.flush()
        answer = _finished(task, completion, attempt.answer(task, live.said))
        await in_database(ledger.finish_step, lease, message.pk, answer)
    except (ProviderError, LimitReached) as error:
        live.flush()
        left = attempt.answer(task, live.said)
        if isinstance(error, ContextTooLong):
            left = replace(left, too_long=task.fitted.estimated)
            await _learn_from(error, task)
        await in_database(ledger.fail_step, lease, message.pk, left)
        if isinstance(error, ContextTooLong) and task.fitted.is_least:
            raise QuestionTooLong(details=error.details) from error
        raise
    except asyncio.CancelledError:
        # The row keeps what was said; whoever settles the turn decides what becomes of it.
        left = attempt.answer(task, live.said)
        await asyncio.shield(in_database(ledger.leave_step, lease, message.pk, left))
        raise
    finally:
        saver.cancel()
        live.close()


async def _answer(task: StepTask, live: LiveText, attempt: _Attempt) -> Completion:
    """The model's answer, in whichever protocol it takes."""
    try:
        async with asyncio.timeout(_seconds_left(task.turn)):
            try:
                return await _stream(task, live, attempt)
            except ToolsRefused:
                if task.bud.tool_protocol != ToolProtocol.AUTO or task.is_fenced:
                    raise
            logger.info("tools_refused", extra={"model": task.provider.model})
            await in_database(
                learn_protocol, task.turn.workspace_id, task.provider, ToolProtocol.FENCED_JSON
            )
            return await _stream(replace(task, protocol=ToolProtocol.FENCED_JSON), live, attempt)
    except TimeoutError as error:
        raise LimitReached("This turn has taken too long, and was ended.") from error


async def _stream(task: StepTask, live: LiveText, attempt: _Attempt) -> Completion:
    stream = model_client(task.provider).stream(request_of(task))
    async for piece in unfenced(stream) if task.is_fenced else stream:
        if isinstance(piece, TextPiece):
            live.append(piece.text)
        elif isinstance(piece, ReasoningPiece):
            live.append_reasoning(piece.text)
        elif isinstance(piece, TokenCount):
            attempt.usage = piece
        else:
            return piece
    raise ProviderError


def request_of(task: StepTask) -> CompletionRequest:
    """What is sent, in the form of the task's protocol. Pure."""
    choice = task.toolset.choice_for_step(task.step)
    functions = [tool.as_function() for tool in task.toolset.tools]
    parameters = task.bud.model_parameters.model_dump(exclude_none=True)
    if task.is_fenced:
        offered = [] if choice == "none" else functions
        messages = fenced_messages(task.prompt, task.fitted.turns, offered, choice)
        return CompletionRequest(
            model=task.provider.model, messages=messages, parameters=parameters
        )
    # Where calls stand in the history, some providers insist on hearing of the tools again.
    has_calls = any(step.calls for turn in task.fitted.turns for step in turn.steps)
    return CompletionRequest(
        model=task.provider.model,
        messages=native_messages(task.prompt, task.fitted.turns),
        tools=functions if choice != "none" or has_calls else (),
        tool_choice=choice,
        parameters=parameters,
    )


def _finished(
    task: StepTask, completion: Completion, said: ledger.AnsweredStep
) -> ledger.AnsweredStep:
    """The whole answer with its calls looked up, as the ledger takes it.

    Raises:
        LimitReached, BrokenArguments: the model goes round in circles.
    """
    offered = task.toolset if task.toolset.choice_for_step(task.step) != "none" else Toolset()
    counted = completion.usage if completion.prompt_tokens else said.usage
    return replace(
        said,
        text=completion.text,
        reasoning=completion.reasoning,
        proposals=propose(offered, completion.calls, task.earlier),
        estimated_tokens=task.fitted.estimated,
        context_used=counted.prompt + counted.completion,
        context_limit=task.facts.context_tokens,
        notice=_notice_of(completion),
    )


def _notice_of(completion: Completion) -> str:
    """What the person should know of how the answer ended."""
    if completion.calls:
        return ""
    if completion.finish_reason == finish_reasons.LENGTH:
        if not completion.text.strip():
            return "The model used up the length of its answer with thinking, and did not answer."
        return "The answer was cut off: it had become as long as the model may write at once."
    return "" if completion.text.strip() else "The model gave an empty answer."


async def _learn_from(error: ContextTooLong, task: StepTask) -> None:
    limit = error.details.get("limit")
    if isinstance(limit, int):
        await in_database(learn_context, task.turn.workspace_id, task.provider, limit)


async def _save_now_and_then(lease: Lease, message_id: UUID, live: LiveText) -> None:
    saved = Said("", "")
    while True:
        await asyncio.sleep(SAVE_PARTIAL_SECONDS)
        said = live.said
        if said != saved:
            await in_database(ledger.save_partial, lease, message_id, said.text, said.reasoning)
            live.mark_saved(said)
            saved = said


def _begin_step(lease: Lease, step: int) -> tuple[StepTask, Message]:
    """What the step needs, and the message that its answer goes into."""
    task = _read_task(lease, step)
    message = ledger.start_step(
        lease,
        step,
        notices=task.notices,
        prompt_tokens=task.fitted.tokens,
        prices=task.facts.prices,
    )
    return task, message


def _read_task(lease: Lease, step: int) -> StepTask:
    """All that a step needs, with today's rights and tools."""
    context = read_context(lease)
    config = settings.TRELLIS
    turn, bud = context.turn, context.bud
    if step >= config.turn_max_steps:
        raise LimitReached(f"This turn has reached its limit of {config.turn_max_steps} steps.")
    if turn.prompt_tokens + turn.completion_tokens >= config.turn_max_tokens:
        raise LimitReached("This turn has reached its limit of tokens.")
    if not has_permission(context.actor, Permission.USE_CHAT, workspace_id=lease.workspace_id):
        raise PermissionDenied("You no longer have access to this workspace.")
    toolset = resolve_toolset(bud, turn.conversation)
    provider = provider_for(bud)
    facts = known_facts(lease.workspace_id, provider)
    prompt = with_instructions(bud.system_prompt, toolset.instructions)
    history = read_history(turn)
    window = Window(
        context_tokens=facts.context_tokens,
        answer_tokens=bud.model_parameters.max_tokens,
        factor=history.factor,
        is_halved=turn.trims_history,
        too_long=history.too_long,
    )
    return StepTask(
        turn=turn,
        bud=bud,
        actor=context.actor,
        step=step,
        provider=provider,
        facts=facts,
        protocol=_protocol_of(bud, facts),
        toolset=toolset,
        prompt=prompt,
        fitted=fit(history.turns, window, fixed=_fixed_size(prompt, toolset)),
        earlier=read_earlier(turn),
    )


def _protocol_of(bud: Bud, facts: ModelFacts) -> ToolProtocol:
    wanted = ToolProtocol(bud.tool_protocol)
    if wanted is not ToolProtocol.AUTO:
        return wanted
    return facts.learned_protocol or ToolProtocol.NATIVE


def _fixed_size(prompt: str, toolset: Toolset) -> int:
    """About how many tokens go with every request, whatever has been said."""
    functions: list[dict[str, Any]] = [tool.as_function() for tool in toolset.tools]
    return estimate(prompt) + (estimate(json.dumps(functions)) if functions else 0)


def _seconds_left(turn: Turn) -> float:
    left = settings.TRELLIS.turn_max_seconds - turn.work_ms / 1000
    if left <= 0:
        raise LimitReached("This turn has taken too long, and was ended.")
    return float(left)
