"""How a call ended, by the log: read again where the row that shows it was not updated any more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from audit.actions import Action, Outcome, RefusedBy
from audit.bodies.storing import read_body
from audit.models import AuditEntry
from workspaces.secrets import SecretUnreadable

_FINISHED: Final = Q(
    action__in=[Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_LEARNED.value]
) & ~Q(outcome__in=["", Outcome.OUTCOME_UNKNOWN.value])
_NOT_SENT: Final = Q(action=Action.TOOL_CALL_REFUSED.value, refused_by=RefusedBy.AUDIT.value)
KNOWN_END: Final = _FINISHED | _NOT_SENT
"""Entries that say what became of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEnd:
    """An end as the log has it."""

    outcome: Outcome | None
    """None: the call was refused when it was too late to record it, and nothing was sent."""
    duration_ms: int
    details: Mapping[str, Any]
    result: Mapping[str, Any] | None
    """What came back, masked as the workspace wishes; None if the log does not hold all of it."""


def recorded_end(workspace_id: UUID, call_id: UUID) -> RecordedEnd | None:
    """How a call ended; None if the log does not know."""
    entries = AuditEntry.objects.for_workspace(workspace_id).filter(KNOWN_END, call_id=call_id)
    # Whatever else is recorded, an end that was seen outweighs it.
    found = sorted(entries, key=lambda entry: (entry.outcome == "", entry.pk))
    if not found:
        return None
    entry = found[0]
    return RecordedEnd(
        outcome=Outcome(entry.outcome) if entry.outcome else None,
        duration_ms=entry.duration_ms or 0,
        details=entry.details,
        result=_result_of(entry),
    )


def _result_of(entry: AuditEntry) -> Mapping[str, Any] | None:
    try:
        body = read_body(entry)
    except SecretUnreadable:
        return None
    if body is None or body.result is None or body.is_cut:
        return None
    try:
        value = json.loads(body.result)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
