"""The outcome of a call as the log has it, for whoever lost it with a process."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_noop as _

from audit.actions import Outcome
from audit.errors import AuditUnavailable
from audit.services.call_outcomes import recorded_end
from mcp_servers.client.values import TextPart, ToolCallOutcome, part_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

RESULT_GONE: Final = _(
    "The call succeeded, but the process that made it ended before its result was kept here."
    " Do not repeat the call for that reason alone."
)


def recorded_outcome(workspace_id: UUID, call_id: UUID) -> tuple[ToolCallOutcome, bool] | None:
    """How a call ended, and whether that is all of its result; None if the log does not know."""
    end = recorded_end(workspace_id, call_id)
    if end is None:
        return None
    if end.outcome is None:
        message = AuditUnavailable.default_message
        return ToolCallOutcome(outcome=Outcome.TRANSPORT_ERROR, message=message), True
    stored: Mapping[str, Any] = end.result or {}
    content = tuple(part_from_json(part) for part in stored.get("content") or ())
    is_whole = end.result is not None or end.outcome is not Outcome.OK
    if not is_whole:
        content = (TextPart(text=RESULT_GONE),)
    message = str(stored.get("message") or "")
    if end.outcome is not Outcome.OK and not message:
        message = str(end.details.get("reason") or _WORDS.get(end.outcome, _("The call failed.")))
    outcome = ToolCallOutcome(
        outcome=end.outcome,
        content=content,
        structured=stored.get("structured"),
        message=message,
        duration_ms=end.duration_ms,
        truncated=bool(end.details.get("truncated")),
        details=end.details,
        cached_at=_moment(end.details.get("cached_at")),
    )
    return outcome, is_whole


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


_WORDS: Final = {
    Outcome.CANCELLED: _("The call was stopped."),
    Outcome.TIMEOUT: _("The tool did not answer in time."),
}
