"""How a call ended, put into its row: by whoever made it, or from the log, where the process died in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from chat.engine.rows import await_word, move_call
from chat.engine.trust import shown
from chat.models import ToolCall
from chat.values import ToolCallStatus
from mcp_servers.client.hidden_text import show_hidden, strip_hidden
from mcp_servers.client.values import TextPart, ToolCallOutcome
from mcp_servers.gate.recorded import RESULT_GONE, recorded_outcome
from workspaces.database import database_now


def settle_from_log(call: ToolCall, *, only_whole: bool = False) -> bool:
    """Bring a call to the end that the log has of it; whether it has one. In the caller's transaction.

    Args:
        only_whole: leave it to the caller if the log does not hold the whole result.
    """
    if call.builtin and call.tool_id is None:
        return False  # made again it does the same, and gives its file
    found = recorded_outcome(call.workspace_id, call.pk)
    if found is None:
        return False
    outcome, is_whole = found
    if only_whole and not (is_whole and not call.builtin):
        return False
    if call.builtin and not outcome.is_error:
        # What goes between a file and a server is neither the model's nor the card's to show.
        outcome = replace(outcome, content=(TextPart(text=RESULT_GONE),), structured=None)
    apply_outcome(call, outcome, texts_of(outcome))
    call.save()
    return True


@dataclass(frozen=True, slots=True)
class OutcomeTexts:
    """What people and the model read of an outcome."""

    content: Any
    structured: Any
    model_text: str
    error: str


def texts_of(outcome: ToolCallOutcome) -> OutcomeTexts:
    """Make an outcome fit to be read. Takes long for a large one, so before the transaction that stores it."""
    return OutcomeTexts(
        content=shown(outcome.content_as_json()),
        structured=shown(outcome.structured),
        model_text=strip_hidden(outcome.as_model_text()),
        error=show_hidden(outcome.message) if outcome.is_error else "",
    )


def apply_outcome(call: ToolCall, outcome: ToolCallOutcome, texts: OutcomeTexts) -> None:
    """Bring a call to how it ended; the caller saves."""
    status = _STATUS_OF_OUTCOME.get(outcome.outcome.value, ToolCallStatus.FAILED)
    move_call(call, status)
    call.result = {
        "content": texts.content,
        "truncated": outcome.truncated,
        "structured": texts.structured,
        "structured_problem": outcome.details.get("structured"),
        "cached_at": outcome.cached_at.isoformat() if outcome.cached_at else None,
    }
    call.was_cached = outcome.cached_at is not None
    call.artifact = outcome.details.get("artifact") or call.artifact
    if outcome.details.get("from_outside"):
        # A file that was fetched or uploaded may hold anybody's words.
        call.annotations = {**call.annotations, "open_world": None}
    call.checkpoint = None
    call.model_text = texts.model_text
    call.error = texts.error
    call.duration_ms = outcome.duration_ms
    call.finished_at = database_now()
    if status is ToolCallStatus.OUTCOME_UNKNOWN:
        await_word(call)


_STATUS_OF_OUTCOME = {
    "ok": ToolCallStatus.SUCCEEDED,
    "cancelled": ToolCallStatus.CANCELLED,
    "outcome_unknown": ToolCallStatus.OUTCOME_UNKNOWN,
}
