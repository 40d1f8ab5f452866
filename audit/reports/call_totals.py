"""How many tool calls ended in a time and how, from the counters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.actions import FAILURES, Action
from audit.models import Dimension
from audit.rollups.reading import TimeRange, UncountedEntries, cells, read_with_tail


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """Calls that ended."""

    ended: int
    failed: int
    """Of those, sent and failed; not those that somebody stopped."""
    refused: int
    """Of those, never sent."""
    missing: int
    """Entries that no counter holds yet: calls may be among them."""


def calls_between(workspace_id: UUID, since: datetime, until: datetime) -> CallTotals:
    """Count the calls of the whole hours that hold both moments."""
    span = TimeRange.around(since, until)

    def read(tail: UncountedEntries) -> CallTotals:
        found = cells(workspace_id, Dimension.ALL, span, tail)
        finished = [cell for cell in found if cell.action == Action.TOOL_CALL_FINISHED.value]
        refused = sum(
            cell.sums.number for cell in found if cell.action == Action.TOOL_CALL_REFUSED.value
        )
        return CallTotals(
            ended=sum(cell.sums.number for cell in finished) + refused,
            failed=sum(cell.sums.number for cell in finished if cell.outcome in FAILURES),
            refused=refused,
            missing=tail.missing,
        )

    return read_with_tail(workspace_id, read)
