"""Who works on a turn: a lease in its row, with a token that grows with each holder.

A holder that was paused past its lease finds another token in the row, and stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q

from chat.hub import PROCESS_ID
from chat.models import Turn
from chat.values import TurnStatus
from workspaces.database import database_now
from workspaces.errors import DomainError

LEASE = timedelta(seconds=15)
RENEW_SECONDS = 2.0
"""Also how soon a stop asked for in another process is noticed."""
_HELD = [TurnStatus.RUNNING.value, TurnStatus.WAITING_FOR_INPUT.value]
"""In which states somebody may hold a turn."""


class LeaseLost(DomainError):
    """Another process has taken the turn over."""

    code = "lease_lost"
    status = 409


@dataclass(frozen=True, slots=True)
class Lease:
    turn_id: UUID
    conversation_id: UUID
    workspace_id: UUID
    token: int


def acquire(turn_id: UUID, workspace_id: UUID) -> Turn | None:
    """Take a turn that is ready for work and that nobody works on, and mark it as running; None if there is none."""
    now = database_now()
    turns = Turn.objects.for_workspace(workspace_id).filter(pk=turn_id)
    taken = turns.filter(_takeable(now)).update(
        lease_owner=PROCESS_ID,
        lease_token=F("lease_token") + 1,
        lease_until=now + LEASE,
        attempt=F("attempt") + 1,
        status=TurnStatus.RUNNING.value,
    )
    return turns.get() if taken else None


def renew(lease: Lease) -> bool:
    """Hold on to a turn; returns whether somebody asked it to stop.

    Raises:
        LeaseLost: it is another's now.
    """
    turns = Turn.objects.for_workspace(lease.workspace_id).filter(pk=lease.turn_id)
    # Only while it runs: a renewal that comes late must not put a lease on a parked turn.
    running = turns.filter(lease_token=lease.token, lease_until__isnull=False, status__in=_HELD)
    kept = running.update(lease_until=database_now() + LEASE)
    if not kept:
        raise LeaseLost
    return turns.filter(stop_requested_at__isnull=False).exists()


def _takeable(now: datetime) -> Q:
    """Ready for work, and nobody works on it. A turn that waits without a lease is parked, and wants nobody."""
    ready = Q(status=TurnStatus.QUEUED.value) | Q(status=TurnStatus.RUNNING.value)
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    left = Q(status=TurnStatus.WAITING_FOR_INPUT.value, lease_until__lt=now)
    return (ready & free) | left


def find_orphans(limit: int = 100) -> list[tuple[UUID, UUID]]:
    """(turn id, workspace id) of turns that should be worked on and are not."""
    now = database_now()
    # A turn that has just been queued is about to be taken by the process that queued it.
    settled = Q(updated_at__lt=now - timedelta(seconds=5))
    rows = Turn.objects.across_workspaces().filter(_takeable(now), settled)
    return list(rows.order_by("pk").values_list("pk", "workspace_id")[:limit])
