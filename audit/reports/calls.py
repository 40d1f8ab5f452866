"""One row for a call: what its entries come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.translation import gettext as _

from audit.actions import CALLS, REFUSALS, Action, Outcome
from audit.models import AuditEntry
from audit.reports.entries import entries_of
from audit.storable import mapping_of
from workspaces.errors import NotFound

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

MOST = 5_000
"""Entries that are read for one page of calls."""
LOST_AFTER: Final = timedelta(days=1)
"""A call without an end is taken for one that still runs for so long."""
_FINISHED: Final = frozenset({*CALLS, Action.TOOL_CALL_LEARNED.value})
_NOT_APPROVED: Final = frozenset({Action.APPROVAL_REFUSED.value, Action.APPROVAL_EXPIRED.value})


class CallState(StrEnum):
    """Where a call stands, by its entries."""

    ENDED = "ended"
    """It has an outcome."""
    REFUSED = "refused"
    NOT_APPROVED = "not_approved"
    """A person refused it, or nobody answered in time."""
    WAITING = "waiting"
    """For a person's approval or answer."""
    RUNNING = "running"
    LOST = "lost"
    """No end was ever recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A call with its entries, or an entry that belongs to no call."""

    first: AuditEntry
    """The entry by which the row has its place."""
    entries: Sequence[AuditEntry] = ()
    """Of the call, oldest first."""
    state: CallState | None = None
    """None: it is no call."""
    end: AuditEntry | None = None
    """The entry that says the state."""

    @property
    def is_call(self) -> bool:
        return self.state is not None

    @property
    def about(self) -> AuditEntry:
        """The entry that knows most of what was called and by whom."""
        return next((one for one in self.entries if one.action in _CALLED), self.first)

    @property
    def duration_ms(self) -> int | None:
        """How long it took, as its end says."""
        return self.end.duration_ms if self.end else self.first.duration_ms

    @property
    def reason(self) -> str:
        """Why it was refused or failed, as it was told."""
        if self.end is None or self.end.outcome == Outcome.OK:
            return ""
        reason = mapping_of(self.end.details).get("reason")
        return reason if isinstance(reason, str) else ""


_CALLED: Final = frozenset(
    {
        *REFUSALS,
        *_FINISHED,
        Action.TOOL_CALL_REQUESTED.value,
        Action.RESOURCE_READ_REQUESTED.value,
        Action.PROMPT_GET_REQUESTED.value,
        Action.APPROVAL_REQUESTED.value,
    }
)
_WAITS: Final = frozenset({Action.APPROVAL_REQUESTED.value, Action.INPUT_REQUESTED.value})


def rows_of(
    found: Iterable[AuditEntry], rows: WorkspaceQuerySet[AuditEntry], *, now: datetime
) -> list[CallRow]:
    """Read the calls that these entries stand for, all in one statement."""
    firsts = list(found)
    ids = {entry.call_id for entry in firsts if entry.call_id}
    of: dict[UUID, list[AuditEntry]] = {}
    if ids:
        # Sorted here: asked for an order, SQLite reads the whole workspace in that order instead of these calls.
        all_of = rows.filter(call_id__in=ids).order_by()
        for entry in all_of.defer("arguments_preview", "result_preview", "annotations")[:MOST]:
            if entry.call_id:
                of.setdefault(entry.call_id, []).append(entry)
    return [
        row_of(first, of.get(first.call_id, []), now=now) if first.call_id else CallRow(first=first)
        for first in firsts
    ]


def call_of(workspace_id: UUID, call_id: UUID, *, actor: Actor, now: datetime) -> CallRow:
    """Give one call with all its entries, for those who may see the log.

    Raises:
        PermissionDenied: the actor may not.
        NotFound: no entry belongs to such a call here.
    """
    rows = entries_of(workspace_id, actor=actor)
    # Sorted by `row_of`: see `rows_of`.
    found = list(rows.filter(call_id=call_id).order_by()[:MOST])
    if not found:
        raise NotFound(_("Call not found."))
    row = row_of(found[0], found, now=now)
    return replace(row, first=row.entries[0])


def row_of(first: AuditEntry, entries: Iterable[AuditEntry], *, now: datetime) -> CallRow:
    """Fold the entries of one call."""
    ordered = sorted(entries, key=lambda entry: (entry.created_at, entry.pk)) or [first]
    state, end = _state_of(ordered, now)
    return CallRow(first=first, entries=ordered, state=state, end=end)


def _state_of(entries: Sequence[AuditEntry], now: datetime) -> tuple[CallState, AuditEntry | None]:
    ends = [entry for entry in entries if entry.action in _FINISHED]
    if ends:
        # An end that was seen outweighs one that nobody knew.
        known = [one for one in ends if one.outcome not in {"", Outcome.OUTCOME_UNKNOWN.value}]
        return CallState.ENDED, (known or ends)[-1]
    for actions, state in ((REFUSALS, CallState.REFUSED), (_NOT_APPROVED, CallState.NOT_APPROVED)):
        refused = [entry for entry in entries if entry.action in actions]
        if refused:
            return state, refused[-1]
    last = entries[-1]
    if last.action in _WAITS:
        return CallState.WAITING, last
    return (CallState.LOST if now - last.created_at > LOST_AFTER else CallState.RUNNING), None
