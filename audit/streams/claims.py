"""One process at a time sends for a stream, and what it notes counts only while it is the one."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q

from audit.models import AuditStream, StreamCursor, StreamState
from workspaces.database import database_now
from workspaces.delivery.outbox import CLAIM_SECONDS, claim_until, unclaimed

FIRST_PAUSE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 900.0
_JITTER: Final = 0.2
_MOST_LOOKED_AT: Final = 2_000


def due_streams() -> list[AuditStream]:
    """Streams that nobody sends for and whose pause is over, those that waited longest first."""
    now = database_now()
    rested = Q(state__next_attempt_at=None) | Q(state__next_attempt_at__lte=now)
    rows = AuditStream.objects.across_workspaces().filter(
        unclaimed(now, "state__"), rested, is_paused=False
    )
    open_to = rows.filter(Q(workspace=None) | Q(workspace__is_active=True))
    ordered = open_to.order_by(F("state__last_sent_at").asc(nulls_first=True), "pk")
    return list(ordered[:_MOST_LOOKED_AT])


def claim(stream: AuditStream) -> UUID | None:
    """Become the one who sends; None if somebody else was first."""
    mine = uuid4()
    rows = StreamState.objects.filter(stream=stream)
    return mine if claim_until(rows, seconds=CLAIM_SECONDS, claim=mine) else None


def renew(stream: AuditStream, mine: UUID) -> bool:
    """Whether the stream is still ours, not paused and not deleted; for another while, then."""
    until = database_now() + timedelta(seconds=CLAIM_SECONDS)
    ours = StreamState.objects.filter(stream=stream, claim=mine)
    active = AuditStream.objects.across_workspaces().filter(pk=stream.pk, is_paused=False)
    return active.exists() and ours.update(claimed_until=until) == 1


def release(stream: AuditStream, mine: UUID) -> None:
    """Let the next round send."""
    ours = StreamState.objects.filter(stream=stream, claim=mine)
    ours.update(claim=None, claimed_until=None)


@transaction.atomic
def note_taken(
    stream: AuditStream, mine: UUID, *, chain_id: UUID, upto: int, sent: int, refused: int
) -> bool:
    """Move the cursor, once the sink has said yes; False if the stream is no longer ours."""
    now = database_now()
    changes: dict[str, object] = {
        "failures": 0,
        "failing_since": None,
        "last_error": "",
        "next_attempt_at": None,
    }
    if sent:
        changes |= {
            "last_sent_at": now,
            "sent": F("sent") + sent,
            "refused": F("refused") + refused,
        }
    if not StreamState.objects.filter(stream=stream, claim=mine).update(**changes):
        return False
    StreamCursor.objects.update_or_create(stream=stream, chain_id=chain_id, defaults={"seq": upto})
    return True


def note_failure(
    stream: AuditStream, mine: UUID, *, message: str, retry_after: float | None
) -> None:
    """Pause, longer each time and never quite as long as the others."""
    state = StreamState.objects.filter(stream=stream, claim=mine).first()
    if state is None:
        return
    failures = state.failures + 1
    pause = min(FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 20), LONGEST_PAUSE_SECONDS)
    pause *= random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  spreads load, keeps no secret
    now = database_now()
    StreamState.objects.filter(stream=stream, claim=mine).update(
        failures=failures,
        failing_since=state.failing_since if state.failures else now,
        last_failed_at=now,
        last_error=message[:300],
        next_attempt_at=now + timedelta(seconds=max(pause, retry_after or 0.0)),
    )
