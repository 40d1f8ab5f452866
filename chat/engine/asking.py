"""One step: a request to the model, streamed, saved now and then, and committed with the calls it asks for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat.engine import steps, turns
from chat.engine.answers import AnsweredStep
from chat.engine.context import LimitReached
from chat.engine.fenced import unfenced
from chat.engine.leases import Lease
from chat.engine.observing import note_completion, request_observed
from chat.engine.partials import Streaming, partials
from chat.engine.proposals import propose
from chat.engine.silence import Silence
from chat.engine.step_task import StepTask, read_task, request_of, without_pictures
from chat.engine.turn_cache import TurnContext
from chat.live.streaming_text import LiveText, TextSoFar
from chat.models import Message, Turn
from chat.providers import finish_reasons, model_requests
from chat.providers.base import Completion, ReasoningPiece, TextPiece, TokenCount
from chat.providers.errors import (
    ContextTooLong,
    PicturesRefused,
    ProviderBusy,
    ProviderError,
    ProviderRateLimited,
    ProviderRefusedRequest,
    ProviderSilent,
    ProviderUnreachable,
    QuestionTooLong,
    ToolsRefused,
)
from chat.providers.estimates import believed_usage
from chat.providers.known_models import learn_context, learn_protocol, learn_sight
from chat.providers.recent_failures import is_of_provider
from chat.providers.standing_in import find_stand_in, note_failure, reason_of
from chat.tools.toolset import Toolset
from chat.values import ToolProtocol
from mcp_servers.gate.caller import Standing
from workspaces.database import in_database

logger = logging.getLogger(__name__)

SAVE_PARTIAL_SECONDS = 1.0
_PASSING = (ProviderUnreachable, ProviderRateLimited, ProviderBusy, ProviderSilent)
"""Failures that may be over in a moment, or that nobody calls one where there is nobody else to ask."""


@dataclass(slots=True)
class _Attempt:
    """What is known so far of a request under way."""

    task: StepTask
    """As it is sent now."""
    started: float
    notices: Sequence[str]
    """What the turn's row says to the person of what is sent."""
    usage: TokenCount | None = None

    def answer(self, text_so_far: TextSoFar) -> AnsweredStep:
        """What came of it, if nothing more comes."""
        task = self.task
        believed = believed_usage(task.fitted.tokens, text_so_far.text + text_so_far.reasoning)
        return AnsweredStep(
            text=text_so_far.text,
            reasoning=text_so_far.reasoning,
            usage=self.usage or believed,
            bill=task.bill,
            work_ms=int((time.monotonic() - self.started) * 1000),
            model=task.provider.model,
            untrusted_source=task.untrusted_source,
            noted=task.noted,
            wants_summary=task.wants_summary,
        )


async def ask_model(lease: Lease, step: int, opened: Message | None = None) -> turns.Work:
    """One request to the model: streamed, saved now and then, and committed with the calls it asks for.

    Args:
        opened: the message that the answer goes into, if it is there already.
    """
    task, message = await in_database(_begin_step, lease, step, opened)
    live = LiveText(lease.conversation_id, message.pk, lambda: lease.standing() is Standing.OURS)
    attempt = _Attempt(task, time.monotonic(), task.notices)
    streaming = Streaming(lease, message.pk, live)
    partials(lambda: SAVE_PARTIAL_SECONDS).add(streaming)
    try:
        completion = await _answer(lease, message, live, attempt)
        live.flush()
        sent = attempt.task
        answer = _finished(sent, completion, attempt.answer(live.so_far))
        new = [notice for notice in sent.notices if notice not in attempt.notices]
        if new:
            both = " ".join(part for part in (*new, answer.notice) if part)
            answer = replace(answer, notice=both)
        context = TurnContext(task.turn, task.bud, task.actor)
        later = steps.keep_for_call(lease, message, answer, context)
        if later is not None:
            return later
        return await in_database(steps.finish_step, lease, message, answer)
    except (ProviderError, LimitReached) as error:
        live.flush()
        left = attempt.answer(live.so_far)
        if isinstance(error, ContextTooLong):
            left = replace(left, too_long=attempt.task.fitted.estimated)
            await _learn_from(error, attempt.task)
        await in_database(steps.fail_step, lease, message.pk, left)
        if isinstance(error, ContextTooLong) and attempt.task.fitted.is_least:
            raise QuestionTooLong(details=error.details) from error
        raise
    except asyncio.CancelledError:
        # The row keeps what was said; whoever settles the turn decides what becomes of it.
        left = attempt.answer(live.so_far)
        await asyncio.shield(in_database(steps.leave_step, lease, message.pk, left))
        raise
    finally:
        partials(lambda: SAVE_PARTIAL_SECONDS).discard(streaming)
        live.close()


async def _answer(lease: Lease, message: Message, live: LiveText, attempt: _Attempt) -> Completion:
    """The model's answer in whichever form it takes; the attempt keeps what was sent.

    Where the provider fails before anything came, the one behind it is asked.
    """
    try:
        async with asyncio.timeout(_seconds_left(attempt.task.turn)):
            while True:
                try:
                    return await _answer_of_one(lease, live, attempt)
                except ProviderError as error:
                    if not is_of_provider(error) or live.so_far != TextSoFar("", ""):
                        raise
                    failure = error
                if await in_database(_ask_another, lease, message, attempt, failure):
                    continue
                provider = attempt.task.provider
                if not provider.has_fallback or not isinstance(failure, _PASSING):
                    raise failure
                # Nobody can stand in after all, so it is asked as patiently as one that stands alone.
                attempt.task = replace(attempt.task, provider=replace(provider, has_fallback=False))
    except TimeoutError as error:
        raise LimitReached(_("This answer took too long and was stopped.")) from error


def _ask_another(lease: Lease, message: Message, attempt: _Attempt, failure: ProviderError) -> bool:
    """Make the same of the task for the provider behind the one that failed; False: there is none."""
    failed = attempt.task
    note_failure(failed.provider, failure)
    found = find_stand_in(lease.workspace_id, failed.provider, reason_of(failed.provider, failure))
    if found is None:
        return False
    lease.carried.stand_in, lease.carried.facts = found, None
    attempt.task = read_task(lease, failed.step, message)
    attempt.notices, attempt.usage = attempt.task.notices, None
    steps.note_notices(lease, attempt.task.turn, attempt.notices)
    return True


async def _answer_of_one(lease: Lease, live: LiveText, attempt: _Attempt) -> Completion:
    """The answer of one provider, without pictures where its model turns out to see none."""
    task = attempt.task
    try:
        return await _stream_with_tools(lease, live, attempt)
    except (PicturesRefused, ProviderRefusedRequest):
        if not task.pictures or live.so_far != TextSoFar("", ""):
            raise
    attempt.task = without_pictures(task)
    completion = await _stream_with_tools(lease, live, attempt)
    # Without them it works, so they were what it did not take.
    logger.info("pictures_refused", extra={"model": task.provider.model})
    await in_database(learn_sight, task.turn.workspace_id, task.provider, sees_pictures=False)
    lease.carried.facts = None
    return completion


async def _stream_with_tools(lease: Lease, live: LiveText, attempt: _Attempt) -> Completion:
    """The answer with functions, or with fenced commands from a model that turns out to take no functions."""
    task = attempt.task
    try:
        return await _stream(lease, live, attempt)
    except ToolsRefused:
        if task.bud.tool_protocol != ToolProtocol.AUTO or task.is_fenced:
            raise
    logger.info("tools_refused", extra={"model": task.provider.model})
    await in_database(
        learn_protocol, task.turn.workspace_id, task.provider, ToolProtocol.FENCED_JSON
    )
    lease.carried.facts = None
    attempt.task = replace(task, protocol=ToolProtocol.FENCED_JSON)
    return await _stream(lease, live, attempt)


async def _stream(lease: Lease, live: LiveText, attempt: _Attempt) -> Completion:
    task = attempt.task

    async def tell(reason: str) -> None:
        notices = (*attempt.notices, reason) if reason else attempt.notices
        await in_database(steps.note_wait, lease, notices)

    silence = Silence(task.provider, tell)

    async def tell_wait(reason: str) -> None:
        silence.end()
        await tell(reason)
        if not reason:
            silence.begin()

    with request_observed(task) as observed:
        try:
            stream = await model_requests.stream(
                task.provider, request_of(task), task.bill.allowance, tell_wait
            )
            silence.begin()
            async for piece in unfenced(stream) if task.is_fenced else stream:
                if silence.lasts:
                    silence.end()
                if isinstance(piece, TextPiece):
                    live.append(piece.text)
                elif isinstance(piece, ReasoningPiece):
                    live.append_reasoning(piece.text)
                elif isinstance(piece, TokenCount):
                    attempt.usage = piece
                else:
                    note_completion(observed, piece)
                    return piece
            raise ProviderError
        finally:
            await silence.settle()


def _finished(task: StepTask, completion: Completion, answer: AnsweredStep) -> AnsweredStep:
    """The whole answer with its calls looked up, as `finish_step` takes it.

    Raises:
        LimitReached, BrokenArguments: the model goes round in circles.
    """
    offered = task.toolset if task.toolset.choice_for_step(task.step) != "none" else Toolset()
    counted = completion.usage if completion.prompt_tokens else answer.usage
    return replace(
        answer,
        text=completion.text,
        reasoning=completion.reasoning,
        proposals=propose(offered, completion.calls, task.earlier, in_words=task.is_fenced),
        blocks=completion.blocks,
        echoed_fields=completion.echoed_fields,
        recipient=task.provider.recipient,
        estimated_tokens=task.fitted.estimated,
        context_used=counted.prompt + counted.completion,
        context_limit=task.facts.context_tokens,
        notice=_notice_of(completion),
        is_cut=_is_cut(completion),
    )


def _is_cut(completion: Completion) -> bool:
    is_long = completion.finish_reason == finish_reasons.LENGTH
    return is_long and not completion.calls and completion.text.strip() != ""


def _notice_of(completion: Completion) -> str:
    """What the person should know of how the answer ended."""
    if completion.calls:
        return ""
    if completion.finish_reason == finish_reasons.LENGTH:
        if not completion.text.strip():
            return _(
                "The model used up the length of its answer with thinking, and did not answer."
            )
        return _("The answer was cut off: it had become as long as the model may write at once.")
    return "" if completion.text.strip() else _("The model gave an empty answer.")


async def _learn_from(error: ContextTooLong, task: StepTask) -> None:
    limit = error.details.get("limit")
    if isinstance(limit, int):
        await in_database(learn_context, task.turn.workspace_id, task.provider, limit)


def _begin_step(lease: Lease, step: int, opened: Message | None = None) -> tuple[StepTask, Message]:
    """What the step needs, and the message that its answer goes into."""
    task = read_task(lease, step, opened)
    if opened is not None:
        steps.note_notices(lease, task.turn, task.notices)
        return task, opened
    message = steps.start_step(
        lease,
        step,
        notices=task.notices,
        prompt_tokens=task.fitted.tokens,
        bill=task.bill,
        untrusted_source=task.untrusted_source,
    )
    return task, message


def _seconds_left(turn: Turn) -> float:
    left = settings.TRELLIS.turn_max_seconds - turn.work_ms / 1000
    if left <= 0:
        raise LimitReached(_("This answer took too long and was stopped."))
    return float(left)
