"""A turn as people who may read the log see it: what was asked and sent, and where its time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from audit import reports
from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, record
from chat.artifacts.knowledge import knowledge_of, with_knowledge
from chat.engine.context_window import ContextWindow, fit
from chat.engine.history import history_of, read_past
from chat.engine.prompting import native_messages, with_instructions, with_mention
from chat.engine.reading import compared_with
from chat.models import BudVersion, Message, ToolCall, Turn
from chat.providers.choosing import provider_of_turn
from chat.providers.known_models import known_facts
from chat.tools.toolset import resolve_toolset
from chat.values import MessageRole, TurnStatus
from workspaces.actors import Actor
from workspaces.errors import NotFound
from workspaces.roles import Permission, has_permission
from workspaces.words.formats import whole

MOST_ENTRIES: Final = 200
MOST_CHARACTERS: Final = 200_000
"""Of a prompt; what is older is left out."""
_BROKEN_OFF: Final = {TurnStatus.FAILED, TurnStatus.CANCELLED, TurnStatus.INTERRUPTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """One message of the prompt."""

    role: str
    text: str
    calls: Sequence[str] = ()
    """Tools that the model asked for in it."""
    request: int | None = None
    """Which request of the turn it answers, counted from one; None: it is no answer of this turn.

    That request held all messages before it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContents:
    """What was said in a turn."""

    question: str
    answer: str
    prompt: Sequence[SentMessage]
    left_out: int
    """Older messages of the prompt that are not shown."""
    is_bud_changed: bool
    """The bud was changed after the turn, so its instructions may have been others."""

    @property
    def has_earlier_requests(self) -> bool:
        """Whether the model was asked before the last request, which the prompt is of."""
        return any(message.request for message in self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallBar:
    """A bar of the waterfall. Times are milliseconds after the question."""

    kind: str
    """model, tool or wait."""
    label: str
    start: int
    length: int
    call_id: UUID | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn, as far as it is still kept."""

    id: UUID
    turn: Turn | None
    """None: the conversation is gone. The log keeps its entries."""
    contents: TurnContents | None
    """None: the actor may not read them, or the conversation was deleted."""
    may_read: bool
    spans: Sequence[WaterfallBar]
    total_ms: int
    entries: Sequence[AuditEntry]
    """The newest first, at most MOST_ENTRIES."""
    has_more_entries: bool = False
    """The log has older ones."""
    beside: Sequence[Turn] = ()
    """Those of other models that answered the same question side by side."""


def read_turn(*, workspace_id: UUID, turn_id: UUID, actor: Actor) -> TurnRecord:
    """Read a turn for somebody who may see the log. Showing what others said is itself an entry.

    Raises:
        PermissionDenied: the actor may not see the log.
        NotFound: nothing is known of such a turn here.
        AuditUnavailable: that it was read could not be recorded, so it is not shown.
    """
    rows = reports.entries_of(workspace_id, actor=actor).filter(turn_id=turn_id)
    read = list(rows.order_by("-created_at", "-id")[: MOST_ENTRIES + 1])
    entries, has_more = read[:MOST_ENTRIES], len(read) > MOST_ENTRIES
    turns = Turn.objects.for_workspace(workspace_id).select_related(
        "conversation__bud__provider",
        "conversation__chosen_model__provider",
        "mentioned_bud__provider",
        "user_message",
        "asked_by",
    )
    turn: Turn | None = turns.find(turn_id)
    if turn is None:
        if not entries:
            raise NotFound(_("Turn not found."))
        return TurnRecord(
            id=turn_id,
            turn=None,
            contents=None,
            may_read=False,
            spans=(),
            total_ms=0,
            entries=entries,
            has_more_entries=has_more,
        )
    messages = list(
        Message.objects.for_workspace(workspace_id)
        .filter(turn=turn, role=MessageRole.ASSISTANT.value)
        .order_by("step")
    )
    is_own = turn.asked_by_id == actor.user_id
    may_read = is_own or has_permission(
        actor, Permission.VIEW_AUDIT_BODIES, workspace_id=workspace_id
    )
    contents = None
    if may_read and turn.conversation.deleted_at is None:
        if not is_own:
            _record_read(turn, actor)
        contents = _contents_of(turn, messages)
    calls = list(
        ToolCall.objects.for_workspace(workspace_id)
        .filter(turn=turn)
        .defer("result", "model_text")
        .order_by("message_id", "position")
    )
    spans = _spans_of(turn, messages, calls)
    return TurnRecord(
        id=turn_id,
        turn=turn,
        contents=contents,
        may_read=may_read,
        spans=spans,
        total_ms=max((span.start + span.length for span in spans), default=0),
        entries=entries,
        has_more_entries=has_more,
        beside=compared_with(turn),
    )


def _record_read(turn: Turn, actor: Actor) -> None:
    record(
        EntryDraft(
            action=Action.BODY_OPENED,
            actor=actor,
            workspace_id=turn.workspace_id,
            details={"turn": str(turn.pk), "conversation": str(turn.conversation_id)},
        )
    )


def _contents_of(turn: Turn, answers: Sequence[Message]) -> TurnContents:
    messages = prompt_of(turn)
    # What broke off is kept for people, and is in no prompt.
    answer = answers[-1].text if answers and turn.status in _BROKEN_OFF else ""
    if messages and messages[-1].role == "assistant" and not messages[-1].calls:
        answer = messages[-1].text  # said with the last request, and no part of it
        messages = messages[:-1]
    shown: list[SentMessage] = []
    size = 0
    for message in reversed(messages):
        size += len(message.text)
        if shown and size > MOST_CHARACTERS:
            break
        shown.append(message)
    return TurnContents(
        question=turn.user_message.text,
        answer=answer,
        prompt=shown[::-1],
        left_out=len(messages) - len(shown),
        is_bud_changed=_instructions_of(turn)[1],
    )


def prompt_of(turn: Turn) -> list[SentMessage]:
    """Build a turn's prompt again from what is stored: what was said, and the bud's instructions of then."""
    bud = turn.answering_bud
    toolset = resolve_toolset(bud, turn.conversation)
    facts = known_facts(turn.workspace_id, provider_of_turn(turn))
    window = ContextWindow(
        context_tokens=facts.context_tokens,
        answer_tokens=bud.model_parameters.max_tokens,
        is_halved=turn.trims_history,
    )
    history = history_of(
        read_past(turn, window), turn, attached_characters=window.attached_characters
    )
    fitted = fit(history.turns, window, fixed=0)
    if not facts.gets_tools:
        toolset = toolset.withheld_from(turn.model)
    knowledge = knowledge_of(bud) if facts.gets_tools else ()
    own = with_knowledge(with_mention(_instructions_of(turn)[0], turn), knowledge)
    prompt = with_instructions(own, toolset.instructions)
    earlier = native_messages(prompt, fitted.turns[:-1], {})
    sent = [_sent(message) for message in earlier]
    request = 0
    for message in native_messages("", fitted.turns[-1:], {}):
        is_answer = message["role"] == "assistant"
        request += is_answer
        sent.append(_sent(message, request if is_answer else None))
    return sent


def _instructions_of(turn: Turn) -> tuple[str, bool]:
    """Give a bud's instructions at the time of a turn, and whether they may have been others."""
    bud = turn.answering_bud
    versions = BudVersion.objects.for_workspace(turn.workspace_id).filter(bud=bud)
    # The first one that is kept is as the bud was before it was first changed.
    then = versions.filter(created_at__lte=turn.created_at).first() or versions.last()
    if then is None:
        return bud.system_prompt, bud.updated_at > turn.created_at
    return str(then.values.get("system_prompt", "")), False


def _sent(message: Mapping[str, Any], request: int | None = None) -> SentMessage:
    calls = [one["function"] for one in message.get("tool_calls", ())]
    return SentMessage(
        role=str(message["role"]),
        text=str(message["content"] or ""),
        calls=[f"{one['name']}({one['arguments']})" for one in calls],
        request=request,
    )


def _spans_of(
    turn: Turn, messages: Sequence[Message], calls: Iterable[ToolCall]
) -> list[WaterfallBar]:
    of: dict[UUID, list[ToolCall]] = {}
    for call in calls:
        of.setdefault(call.message_id, []).append(call)
    found: list[WaterfallBar] = []

    def add(kind: str, label: str, times: tuple[datetime, datetime], **more: Any) -> None:
        start, end = times
        offset = _ms(start - turn.created_at)
        found.append(
            WaterfallBar(kind=kind, label=label, start=offset, length=_ms(end - start), **more)
        )

    for message in messages:
        asked = of.get(message.pk, [])
        ends = [call.created_at for call in asked] or [turn.finished_at or message.updated_at]
        tokens = f"{whole(message.prompt_tokens)} + {whole(message.completion_tokens)}"
        add("model", turn.model, (message.created_at, min(ends)), note=tokens)
        for call in asked:
            name = call.tool_title or call.tool_name or call.function_name
            if call.decided_at:
                add("wait", name, (call.created_at, call.decided_at), call_id=call.pk)
            if call.started_at and call.finished_at:
                add("tool", name, (call.started_at, call.finished_at), call_id=call.pk)
    return found


def _ms(span: timedelta) -> int:
    return max(0, round(span.total_seconds() * 1000))
