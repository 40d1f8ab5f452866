"""What operators read of turns and sockets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import Count

from chat.models import Turn
from chat.sockets.open import sockets
from chat.values import TurnStatus
from workspaces.process import metrics

_GOING_ON: Final = (
    TurnStatus.QUEUED,
    TurnStatus.RUNNING,
    TurnStatus.WAITING_FOR_APPROVAL,
    TurnStatus.WAITING_FOR_INPUT,
)


def register() -> None:
    """Offer the gauges: sockets of this process, turns of the installation."""
    metrics.gauge(
        "trellis_sockets_open", "Sockets of this process.", lambda: metrics.one(len(sockets))
    )
    metrics.gauge("trellis_turns", "Turns that have not ended.", _turns, labels=["status"])


def _turns() -> Iterable[tuple[Sequence[str], float]]:
    wanted = [status.value for status in _GOING_ON]
    rows = Turn.objects.across_workspaces().filter(status__in=wanted).order_by()
    counted = {
        row["status"]: row["count"] for row in rows.values("status").annotate(count=Count("pk"))
    }
    return [((status,), counted.get(status, 0)) for status in wanted]
