"""What a schedule would send, told before it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from audit.reports.entries import entries_of
from audit.reports.searching import matching
from audit.reviews.schedules import ScheduleDraft, faults_of, filter_of, next_run, period_before
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor

_NOT_YET = frozenset({"name", "recipients"})
"""What a person may still leave open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The file that would have been made last."""

    since: datetime
    until: datetime
    entries: int
    next_run_at: datetime


def preview_schedule(
    *, workspace_id: UUID, actor: Actor, draft: ScheduleDraft, now: datetime
) -> Preview:
    """Count what the newest file of such a schedule would hold. Nothing is made or sent.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: with what is wrong at which field.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace_id)
    found = faults_of(draft, workspace_id=workspace_id, now=now)
    faults = {name: texts for name, texts in found.items() if name not in _NOT_YET}
    if faults:
        raise InvalidInput(fields=faults)
    since, until = period_before(draft.cadence, now)
    wanted = replace(filter_of(draft.query, now=now), since=since, until=until)
    rows = matching(entries_of(workspace_id, actor=actor), wanted, actor=actor)
    return Preview(
        since=since, until=until, entries=rows.count(), next_run_at=next_run(draft.cadence, now)
    )
