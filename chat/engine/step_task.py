"""What one step needs, with today's rights and tools, and the request that it makes of it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat.artifacts import storage
from chat.artifacts.errors import ContentMissing
from chat.artifacts.knowledge import knowledge_of, with_knowledge
from chat.documents.pictures import MIME_TYPE
from chat.engine.context import LimitReached, read_context
from chat.engine.context_window import (
    ContextWindow,
    FittedHistory,
    fit,
    is_nearly_full,
    with_summary,
)
from chat.engine.counting import ANSWER, turn_payer
from chat.engine.fitting_notices import notice_of
from chat.engine.history import History, go_on_from, history_of, quoted, reach_back, read_past
from chat.engine.leases import Lease
from chat.engine.prompting import fenced_messages, native_messages, with_instructions, with_mention
from chat.engine.turn_cache import EarlierCalls, RecentPath, TurnContext
from chat.models import Bud, Message, Turn
from chat.providers.base import CompletionRequest, ProviderSpec
from chat.providers.choosing import provider_of_turn
from chat.providers.estimates import estimate
from chat.providers.known_models import ModelFacts, known_facts
from chat.providers.spending import Bill
from chat.providers.spending_holds import RequestingTurn, expected_usage, hold_for
from chat.providers.standing_in import resting_stand_in
from chat.tools.toolset import Toolset, resolve_toolset
from chat.values import NOTICE, ToolProtocol
from workspaces.actors import Actor
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    """What one step needs, with today's rights and tools."""

    turn: Turn
    bud: Bud
    actor: Actor
    step: int
    provider: ProviderSpec
    begun_notice: str
    """What was to be said of the turn when it began; empty: nothing."""
    stand_in_notice: str
    """That another provider than the chosen one is asked, and why; empty: it is not so."""
    facts: ModelFacts
    pictures: Mapping[str, str]
    """Those of the history that are sent, as data URLs, by their paths."""
    protocol: ToolProtocol
    toolset: Toolset
    prompt: str
    fitted: FittedHistory
    earlier: EarlierCalls
    bill: Bill
    """Who pays, with what they may still spend."""
    untrusted_source: str
    noted: Mapping[str, Any]
    """What the answer's row keeps of its path."""
    wants_summary: bool = False
    """The window is nearly full: what is older should be summarised."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the person should know of what is sent."""
        notices = (
            self.begun_notice,
            self.stand_in_notice,
            *self.toolset.notices,
            notice_of(self.fitted),
            self.picture_notice,
        )
        return tuple(part for part in notices if part)

    @property
    def picture_notice(self) -> str:
        """That the model did not see the pictures of the question or its tools; empty: it did, or there are none."""
        turn = self.fitted.turns[-1] if self.fitted.turns else None
        asked = [*turn.pictures, *turn.returned] if turn else []
        if self.facts.sees_pictures is not False or not asked:
            return ""
        what = "the picture was" if len(asked) == 1 else "the pictures were"
        return f"{self.provider.model} cannot see pictures, so {what} not shown to it. Ask a bud with another model."

    @property
    def is_toolless(self) -> bool:
        """Whether the model hears of no tools at all, and reads earlier calls as text."""
        return not self.facts.gets_tools

    @property
    def is_fenced(self) -> bool:
        """Whether the model is told of tools in words."""
        return self.protocol is ToolProtocol.FENCED_JSON


def request_of(task: StepTask) -> CompletionRequest:
    """What is sent, in the form of the task's protocol. Pure."""
    choice = task.toolset.choice_for_step(task.step)
    parameters = task.bud.model_parameters.model_dump(exclude_none=True)
    if task.is_fenced or task.is_toolless:
        offered = [] if choice == "none" else [tool.as_function() for tool in task.toolset.tools]
        messages = fenced_messages(task.prompt, task.fitted.turns, offered, choice, task.pictures)
        return CompletionRequest(
            model=task.provider.model,
            messages=messages,
            parameters=parameters,
            is_patient=not task.provider.has_fallback,
            reasons=task.facts.reasons,
            silent_seconds=_silent_seconds(task),
        )
    # Where calls stand in the history, some providers insist on hearing of the tools again.
    has_calls = any(step.calls for turn in task.fitted.turns for step in turn.steps)
    return CompletionRequest(
        model=task.provider.model,
        messages=native_messages(
            task.prompt, task.fitted.turns, task.pictures, recipient=task.provider.recipient
        ),
        tools=[tool.as_json().text for tool in task.toolset.tools]
        if choice != "none" or has_calls
        else (),
        tool_choice=choice,
        parameters=parameters,
        is_patient=not task.provider.has_fallback,
        reasons=task.facts.reasons,
        silent_seconds=_silent_seconds(task),
    )


def _silent_seconds(task: StepTask) -> float | None:
    """How long its provider may be silent: not for long where another one stands by, for models that think longer."""
    if not task.provider.has_fallback:
        return None
    seconds = float(settings.TRELLIS.fallback_seconds)
    return 2 * seconds if task.facts.reasons else seconds


def read_task(lease: Lease, step: int, opened: Message | None = None) -> StepTask:
    """All that a step needs, with today's rights and tools.

    Args:
        opened: the message that the answer goes into, if it was opened by this process with the write before.

    Raises:
        LimitReached: the turn has used up its steps or tokens.
        PermissionDenied: the person has no access any more.
    """
    carried = lease.carried
    context = (carried.take_context() if opened else None) or read_context(lease)
    config = settings.TRELLIS
    turn, bud = context.turn, context.bud
    if step >= config.turn_max_steps:
        raise LimitReached(
            _("This answer reached its limit of %(turn_max_steps)s steps.")
            % {"turn_max_steps": config.turn_max_steps}
        )
    if turn.prompt_tokens + turn.completion_tokens >= config.turn_max_tokens:
        raise LimitReached(_("This answer reached its limit of tokens."))
    if not has_permission(context.actor, Permission.USE_CHAT, workspace_id=lease.workspace_id):
        raise PermissionDenied(_("You no longer have access to this workspace."))
    toolset = resolve_toolset(bud, turn.conversation)
    provider = provider_of_turn(turn)
    if carried.stand_in is None:
        carried.stand_in = resting_stand_in(lease.workspace_id, provider)
        carried.facts = None if carried.stand_in else carried.facts
    if carried.stand_in is not None:
        provider = carried.stand_in.spec
    facts = carried.facts = carried.facts or known_facts(lease.workspace_id, provider)
    if not facts.gets_tools:
        toolset = toolset.withheld_from(provider.model)
    # Files of knowledge are read with tools.
    knowledge = knowledge_of(bud) if facts.gets_tools else ()
    own = with_knowledge(with_mention(bud.system_prompt, turn), knowledge)
    prompt = with_instructions(own, toolset.instructions)
    window = ContextWindow(
        context_tokens=facts.context_tokens,
        answer_tokens=bud.model_parameters.max_tokens,
        is_halved=turn.trims_history,
    )
    fixed = _fixed_size(prompt, toolset)
    past = _past_of(lease, turn, step, opened, window=window, fixed=fixed)
    history = history_of(past, turn, attached_characters=window.attached_characters)
    window = replace(window, factor=history.factor, too_long=history.too_long)
    fitted = _fitted(history, window, fixed)
    return StepTask(
        turn=turn,
        bud=bud,
        actor=context.actor,
        step=step,
        provider=provider,
        begun_notice=_begun_notice(turn, past),
        stand_in_notice=carried.stand_in.notice if carried.stand_in else "",
        facts=facts,
        protocol=_protocol_of(bud, facts),
        toolset=toolset,
        prompt=prompt,
        fitted=fitted,
        pictures={} if facts.sees_pictures is False else _pictures_of(fitted),
        earlier=past.earlier,
        bill=_bill(lease, context, provider, facts, fitted),
        untrusted_source=history.untrusted_source,
        noted=history.noted,
        wants_summary=history.may_summarise
        and not provider.is_demo
        and is_nearly_full(fitted, window),
    )


def _bill(
    lease: Lease,
    context: TurnContext,
    provider: ProviderSpec,
    facts: ModelFacts,
    fitted: FittedHistory,
) -> Bill:
    payer = turn_payer(context.turn, context.bud, context.actor, ANSWER)
    asking = RequestingTurn(
        turn_id=lease.turn_id,
        lease_token=lease.token,
        expected=expected_usage(fitted.tokens, context.bud.model_parameters.max_tokens),
    )
    return hold_for(payer, provider, context.spending_zone, facts.prices, asking)


def _begun_notice(turn: Turn, past: RecentPath) -> str:
    """Of its question's first answer; of those that stand side by side, the first one says it."""
    if turn.client_id is not None or turn.place:
        return ""
    asked = next((row for row in reversed(past.path) if row.id == turn.user_message_id), None)
    return str(asked.json_meta.get(NOTICE, "")) if asked is not None else ""


def _fitted(history: History, window: ContextWindow, fixed: int) -> FittedHistory:
    """What is sent of what was said, with the summary of what is older as far as the model has room for one."""
    summary, before = history.summary, history.questions_before
    size = estimate(summary.text) if summary is not None else 0
    if summary is None or not history.turns or 3 * size > window.budget(0):
        return fit(history.turns, window, fixed=fixed, questions_before=before)
    before = max(0, before - summary.questions)
    fitted = fit(history.turns, window, fixed=fixed + size, questions_before=before)
    return with_summary(fitted, quoted(summary.text))


def _past_of(
    lease: Lease,
    turn: Turn,
    step: int,
    opened: Message | None,
    *,
    window: ContextWindow,
    fixed: int,
) -> RecentPath:
    """What was said before: read, or what the step before was given with what came of it."""
    carried = lease.carried
    past, answer, ended = carried.past, carried.answer, carried.ended
    carried.answer, carried.ended = None, {}
    if (
        past is not None
        and answer is not None
        and opened is not None
        and opened.parent_id == answer.pk
        and len(ended) == len(answer.json_meta["tool_calls"])
    ):
        past = go_on_from(past, answer, ended, opened)
        has_attachments = carried.has_attachments
        past = reach_back(past, turn, window, fixed=fixed, has_attachments=has_attachments)
    else:
        past = read_past(
            turn, window, fixed=fixed, step=step, has_attachments=carried.has_attachments
        )
    carried.past = past
    return carried.past


def without_pictures(task: StepTask) -> StepTask:
    """The same for a model that turned out to see none."""
    return replace(task, pictures={}, facts=replace(task.facts, sees_pictures=False))


def _pictures_of(fitted: FittedHistory) -> dict[str, str]:
    found = {}
    pictures = [one for turn in fitted.turns for one in (*turn.pictures, *turn.returned)]
    for picture in (one for one in pictures if one.path):
        if picture.url:
            found[picture.path] = picture.url
            continue
        # One that has gone is named in the text, and that is all.
        with suppress(ContentMissing):
            data = base64.b64encode(storage.read(picture.path)).decode()
            found[picture.path] = f"data:{MIME_TYPE};base64,{data}"
    return found


def _protocol_of(bud: Bud, facts: ModelFacts) -> ToolProtocol:
    if not facts.gets_tools:
        return ToolProtocol.NATIVE  # blocks in its answers are text
    wanted = ToolProtocol(bud.tool_protocol)
    if wanted is not ToolProtocol.AUTO:
        return wanted
    usual = ToolProtocol.FENCED_JSON if facts.takes_functions is False else ToolProtocol.NATIVE
    return facts.learned_protocol or usual


def _fixed_size(prompt: str, toolset: Toolset) -> int:
    """About how many tokens go with every request, whatever has been said."""
    functions = ", ".join(tool.as_json().padded for tool in toolset.tools)
    return estimate(prompt) + (estimate(f"[{functions}]") if functions else 0)
