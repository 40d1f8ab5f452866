"""The rows of a list of the log, in words: one for a call, one for every other entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from audit import reports
from audit.actions import Action
from audit.filters import ENTRIES
from audit.reports import CallRow, CallState
from audit.reports.figures import spoken_time
from audit.reports.filter_words import Words
from audit.views.parts import around, call_url, described, found_by
from audit.views.words import ended, layer_in_words

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from workspaces.scoping import WorkspaceQuerySet

_STATES: Final[dict[CallState, tuple[Words, str]]] = {
    CallState.ENDED: (_("Ended"), "muted"),
    CallState.REFUSED: (_("Refused"), "warn"),
    CallState.NOT_APPROVED: (_("Not approved"), "warn"),
    CallState.WAITING: (_("Waiting for an answer"), "muted"),
    CallState.RUNNING: (_("Running"), "muted"),
    CallState.LOST: (_("No end recorded"), "warn"),
}
_KINDS: Final = (
    ("resource_read.", _("Resource read")),
    ("prompt_get.", _("Prompt fetched")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """A row as the template shows it."""

    entry: AuditEntry
    """What was called and by whom, or the entry itself."""
    at: datetime
    page_of: UUID
    """The entry whose page the row leads to."""
    title: str | Promise
    took: str
    entries: Sequence[AuditEntry] = ()
    """Of a call, oldest first."""
    outcome: Words = ""
    tone: str = ""
    reason: str | Promise = ""
    around: str = ""
    """What else happened then, for those who may see the log."""
    alone: str = ""
    """The entries of the call and no others."""
    url: str = ""
    """The page of the call, for those who may see the log; else the row leads to `page_of`."""


def shown_rows(
    found: Sequence[AuditEntry],
    rows: WorkspaceQuerySet[AuditEntry],
    *,
    as_calls: bool,
    now: datetime,
    log_url: str = "",
) -> list[ShownRow]:
    """Put entries into words, each with its call if they stand for calls.

    Args:
        log_url: of the log, for those who may see it.
    """
    if not as_calls:
        return [_shown(CallRow(first=entry), log_url) for entry in found]
    return [_shown(row, log_url) for row in reports.rows_of(found, rows, now=now)]


def _shown(row: CallRow, log_url: str) -> ShownRow:
    entry = described(row.about)
    took = "" if row.duration_ms is None else spoken_time(row.duration_ms)
    if row.state is None:
        title = getattr(entry, "action_label", entry.action)
        return ShownRow(entry=entry, at=entry.created_at, page_of=entry.pk, title=title, took=took)
    outcome, tone = outcome_of(row)
    return ShownRow(
        entry=entry,
        at=row.first.created_at,
        page_of=(row.end or row.about).pk,
        title=title_of_call(row.entries),
        took=took,
        entries=[described(one) for one in row.entries],
        outcome=outcome,
        tone=tone,
        around=around(log_url, row.entries) if log_url else "",
        url=call_url(log_url, entry.call_id) if log_url and entry.call_id else "",
        alone=found_by(log_url, call=entry.call_id, show=ENTRIES) if log_url else "",
        reason=row.reason or (layer_in_words(row.end.refused_by) if row.end else ""),
    )


def outcome_of(row: CallRow) -> tuple[Words, str]:
    """Give where a call stands in words, and their tone."""
    assert row.state is not None
    end = row.end
    if end is not None and end.outcome:
        return ended(end.outcome, "")
    if end is not None and end.action == Action.APPROVAL_EXPIRED:
        return _("Approval ran out"), "warn"
    if end is not None and end.action == Action.APPROVAL_REQUESTED:
        return _("Waiting for approval"), "muted"
    return _STATES[row.state]


def title_of_call(entries: Iterable[AuditEntry]) -> Words:
    """Say what kind of call it is."""
    for entry in entries:
        for begin, title in _KINDS:
            if entry.action.startswith(begin):
                return title
    return _("Tool call")
