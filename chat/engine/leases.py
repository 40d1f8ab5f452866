"""Who works on a turn: a lease in its row, with a token that grows with each holder.

A holder that was paused past its lease finds another token in the row, and stops. Whether a lease has run out is
decided by the database's clock alone; a holder also keeps a clock of its own, by which it knows for sure that it still
holds the lease, or does not know.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_noop as _

from chat.engine.dead_processes import show_alive
from chat.engine.turn_cache import TurnCache
from chat.live.hub import PROCESS_ID
from chat.models import Turn
from chat.values import TurnStatus
from mcp_servers.client.errors import CallTakenOver
from mcp_servers.gate.caller import Standing
from workspaces.database import database_now
from workspaces.database.prepared import PreparedRows
from workspaces.models import ApiToken, Membership
from workspaces.process.failpoints import Failpoint, failpoint

LEASE = timedelta(seconds=15)
RENEW_SECONDS = 2.0
"""Also how soon a stop asked for in another process is noticed."""
_MOST_AT_ONCE = 100
"""Leases that one statement renews."""
MOST_ORPHANS = 50
"""How many are taken over at one look."""
_HELD = [TurnStatus.RUNNING.value, TurnStatus.WAITING_FOR_INPUT.value]
"""In which states somebody may hold a turn."""
# This one goes on while a machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseLost(CallTakenOver):
    """Another process has taken the turn over."""

    code = "lease_lost"
    default_message = _("Another process has taken this turn over.")


class LeaseClock:
    """Until when a lease certainly lasts, by this machine's uninterrupted clock.

    Counted from before the database was asked, so it ends sooner than the lease in the row, whatever was slow.
    """

    def __init__(self) -> None:
        self._until = _now() + LEASE.total_seconds()
        self._is_lost = False
        self.is_handed_over = False
        """The work was cut off here, and goes on in another process."""

    def lasts(self, asked_at: float) -> None:
        """The lease was renewed, by a question put at that moment."""
        self._until = asked_at + LEASE.total_seconds()

    def is_lost(self) -> None:
        """The row has another holder."""
        self._is_lost = True

    def standing(self) -> Standing:
        """What this clock says; from any thread."""
        if self._is_lost:
            return Standing.LOST
        return Standing.OURS if _now() < self._until else Standing.UNSURE


@dataclass(frozen=True, slots=True)
class Lease:
    turn_id: UUID
    conversation_id: UUID
    workspace_id: UUID
    token: int
    clock: LeaseClock = field(default_factory=LeaseClock, compare=False, repr=False)
    carried: TurnCache = field(default_factory=TurnCache, compare=False, repr=False)

    def standing(self) -> Standing:
        """Whether the turn is still ours, as far as this process knows without asking."""
        return self.clock.standing()


def hold(turn: Turn, clock: LeaseClock, carried: TurnCache, now: datetime) -> Lease:
    """Have a turn that is about to be stored taken from its beginning; the caller saves it."""
    show_alive()
    turn.lease_owner = PROCESS_ID
    turn.lease_token = turn.attempt = 1
    turn.lease_until = now + LEASE
    turn.status = TurnStatus.RUNNING.value
    token = turn.lease_token
    return Lease(turn.pk, turn.conversation_id, turn.workspace_id, token, clock, carried)


def acquire(turn: Turn) -> bool:
    """Take a turn that is ready for work and that nobody works on, and mark it as running; whether there was one.

    The conversation is locked, and the turn was read under that lock.
    """
    show_alive()
    now = database_now()
    taken = {
        "lease_owner": PROCESS_ID,
        "lease_token": turn.lease_token + 1,
        "lease_until": now + LEASE,
        "attempt": turn.attempt + 1,
        "status": TurnStatus.RUNNING.value,
    }
    rows = Turn.objects.for_workspace(turn.workspace_id)
    # The token once more, so that two who read the same row never both have it.
    free = rows.filter(_takeable(now), pk=turn.pk, lease_token=turn.lease_token)
    if not free.update(**taken):
        return False
    for name, value in taken.items():
        setattr(turn, name, value)
    return True


def renew(lease: Lease) -> bool:
    """Hold on to a turn; returns whether it has to stop: somebody asked for it, or the asker's rights have ended.

    Raises:
        LeaseLost: it is another's now.
    """
    asked_at = _now()
    turns = Turn.objects.for_workspace(lease.workspace_id).filter(pk=lease.turn_id)
    # Only while it runs: a renewal that comes late must not put a lease on a parked turn.
    running = turns.filter(lease_token=lease.token, lease_until__isnull=False, status__in=_HELD)
    kept = running.update(lease_until=database_now() + LEASE)
    if not kept:
        lease.clock.is_lost()
        raise LeaseLost
    lease.clock.lasts(asked_at)
    failpoint(Failpoint.RENEWED)
    return _TO_BE_STOPPED.first(lease.workspace_id, lease.turn_id) is not None


@dataclass(slots=True)
class RenewalResult:
    """What became of leases that were renewed together."""

    lost: list[Lease] = field(default_factory=list)
    """Another process has the turn, or it has been let go."""
    stopping: list[Lease] = field(default_factory=list)
    """Somebody asked for a stop, or the asker's rights have ended."""


def renew_all(leases: Sequence[Lease]) -> RenewalResult:
    """Hold on to many turns with two statements. One that is being written just now is left for the next time."""
    renewed = RenewalResult()
    for start in range(0, len(leases), _MOST_AT_ONCE):
        _renew_some(leases[start : start + _MOST_AT_ONCE], renewed)
    return renewed


def _renew_some(leases: Sequence[Lease], renewed: RenewalResult) -> None:
    asked_at = _now()
    until = database_now() + LEASE
    turns = Turn.objects.across_workspaces()
    ours = Q()
    for lease in leases:
        ours |= Q(pk=lease.turn_id, workspace_id=lease.workspace_id, lease_token=lease.token)
    held = turns.filter(ours, lease_until__isnull=False, status__in=_HELD).order_by()
    kept = list(leases)
    with transaction.atomic():
        free = held.select_for_update(skip_locked=True).values("pk")
        number = turns.filter(pk__in=free).update(lease_until=until)
    if number < len(leases):
        deadlines = dict(held.values_list("pk", "lease_until"))
        for lease in leases:
            if lease.turn_id not in deadlines:
                lease.clock.is_lost()
                renewed.lost.append(lease)
        kept = [lease for lease in leases if deadlines.get(lease.turn_id) == until]
    for lease in kept:
        lease.clock.lasts(asked_at)
    failpoint(Failpoint.RENEWED)
    stopping = turns.filter(pk__in=[lease.turn_id for lease in leases]).filter(
        Q(stop_requested_at__isnull=False) | ~_has_rights()
    )
    ids = set(stopping.order_by().values_list("pk", flat=True))
    renewed.stopping += [lease for lease in leases if lease.turn_id in ids]


def _to_be_stopped(workspace_id: UUID, turn_id: UUID) -> Any:
    turns = Turn.objects.for_workspace(workspace_id).filter(pk=turn_id).only("pk").order_by()
    return turns.filter(Q(stop_requested_at__isnull=False) | ~_has_rights())


_TO_BE_STOPPED = PreparedRows[Turn](_to_be_stopped, UUID, UUID)


def _has_rights() -> Q:
    """Whether the person who asked may still use this workspace, by the token that they came with."""
    members = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"), user_id=OuterRef("asked_by_id")
    )
    tokens = ApiToken.objects.across_workspaces().living().filter(pk=OuterRef("token_id"))
    is_member = Q(Exists(members)) | Q(asked_by__is_superuser=True)
    is_welcome = Q(asked_by__is_active=True, workspace__is_active=True)
    return is_welcome & is_member & (Q(token_id=None) | Q(Exists(tokens)))


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _takeable(now: datetime) -> Q:
    """Ready for work, and nobody works on it. A turn that waits without a lease is parked, and wants nobody."""
    ready = Q(status=TurnStatus.QUEUED.value) | Q(status=TurnStatus.RUNNING.value)
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    left = Q(status=TurnStatus.WAITING_FOR_INPUT.value, lease_until__lt=now)
    return (ready & free) | left


class Orphan(NamedTuple):
    """A turn that should be worked on and is not."""

    turn_id: UUID
    workspace_id: UUID
    token: int
    is_new: bool
    """Nobody has ever worked on it."""


class Orphanage:
    """Finds turns that nobody works on, look by look.

    A turn that has just been begun is about to be taken by the process that stored it, so it counts only at the
    second look that sees it so. One that was handed back counts at once. No clock but the database's is asked for that.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[UUID, int]] = set()
        self._lock = threading.Lock()

    def look(self, limit: int = MOST_ORPHANS) -> list[Orphan]:
        """Those to be taken over now."""
        now = database_now()
        rows = Turn.objects.across_workspaces().filter(_takeable(now)).order_by("lease_until", "pk")
        found = [
            Orphan(turn_id, workspace_id, token, attempt == 0)
            for turn_id, workspace_id, token, attempt in rows.values_list(
                "pk", "workspace_id", "lease_token", "attempt"
            )[:limit]
        ]
        with self._lock:
            known, self._seen = self._seen, {(one.turn_id, one.token) for one in found}
        return [one for one in found if not one.is_new or (one.turn_id, one.token) in known]
