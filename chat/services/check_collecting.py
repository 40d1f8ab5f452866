"""What a check's turn came to: its answer, its calls, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext_noop as _

from audit.services import was_requested
from chat.check_shapes import CheckShape
from chat.models import Bud, CheckResult, Message, ToolCall, Turn
from chat.providers.base import TokenCount
from chat.services.check_judging import Verdict, judge
from chat.services.check_verdicts import MadeCall, faults_of, notes_of
from chat.values import MessageRole, ToolCallStatus, TurnStatus

_LONGEST_ANSWER: Final = 20_000
_LONGEST_RESULT: Final = 2_000
_MOST_CALLS: Final = 50
_ENDED_WELL: Final = (ToolCallStatus.SUCCEEDED.value, ToolCallStatus.FAILED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTurn:
    """What is kept of a check's turn."""

    faults: list[str]
    notes: list[str] = field(default_factory=list)
    answer: str = ""
    judged: str = ""
    """What the model that judged it said."""
    calls: list[MadeCall] = field(default_factory=list)
    spent: dict[str, Any] = field(default_factory=dict)
    """The columns of a result that say which model answered, its tokens and their cost."""


def collect(result: CheckResult, turn: Turn, draft: Bud) -> CheckedTurn:
    """Read what a turn that has ended said and called, and judge it. May wait for the model."""
    expected = CheckShape.model_validate(result.expected)
    messages = Message.objects.for_workspace(turn.workspace_id).filter(
        turn=turn, role=MessageRole.ASSISTANT.value
    )
    texts = [text for text in messages.order_by("order_key").values_list("text", flat=True) if text]
    answer = texts[-1] if texts else ""
    calls = _calls_of(turn)
    notes = notes_of(calls)
    faults = faults_of(expected, answer=answer, calls=calls)
    verdict = None
    if turn.status != TurnStatus.COMPLETED:
        why = turn.error_message or _("It was stopped.")
        faults = [_("The bud gave no whole answer. %(why)s") % {"why": why}, *faults]
    elif expected.criterion and not faults:
        # Only of an answer that has no fault yet, since each verdict costs a request.
        verdict = judge(
            bud=draft,
            criterion=expected.criterion,
            question=expected.question,
            answer=answer,
            turn=turn,
        )
        faults = [verdict.fault] if verdict.fault else []
    return CheckedTurn(
        faults=faults,
        notes=notes,
        answer=answer[:_LONGEST_ANSWER],
        judged=verdict.reason if verdict is not None else "",
        calls=calls,
        spent=spent_on(turn, verdict),
    )


def spent_on(turn: Turn, verdict: Verdict | None = None) -> dict[str, Any]:
    """Which model answered a check, its tokens and their cost, as a result keeps them: its turn is deleted with the run."""
    usage = verdict.usage if verdict is not None else TokenCount()
    costs = [cost for cost in (turn.cost, verdict.cost if verdict else None) if cost is not None]
    return {
        "model": turn.model,
        "prompt_tokens": turn.prompt_tokens + usage.prompt,
        "cached_tokens": turn.cached_tokens + usage.cached,
        "completion_tokens": turn.completion_tokens + usage.completion,
        "cost": sum(costs) if costs else None,
    }


def _calls_of(turn: Turn) -> list[MadeCall]:
    rows = ToolCall.objects.for_workspace(turn.workspace_id).filter(turn=turn)
    return [_made(row) for row in rows.order_by("message__order_key", "position")[:_MOST_CALLS]]


def _made(row: ToolCall) -> MadeCall:
    # By the log: what ended without having been let through was never sent.
    was_sent = row.tool_id is None or was_requested(row.workspace_id, row.pk)
    return MadeCall(
        call_id=str(row.pk),
        server=row.server_name,
        tool=row.tool_name or row.builtin or row.function_name,
        arguments=row.arguments,
        status=row.status,
        result=(row.model_text or row.error)[:_LONGEST_RESULT],
        is_recorded=not was_sent and row.status in _ENDED_WELL and row.result is not None,
        was_kept_back=not was_sent and row.status == ToolCallStatus.REFUSED and is_kept_back(row),
    )


def is_kept_back(row: ToolCall) -> bool:
    """Whether a refused call was one that may change data, by its definition when it was offered."""
    hints = row.annotations
    return not (hints.get("is_trusted") and hints.get("read_only") and not hints.get("destructive"))
