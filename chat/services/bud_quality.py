"""How a bud does: used how much, at what cost, how fast, and what failed. Numbers of a time, for those who may edit it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Count, Q, Sum
from django.utils import timezone

from audit.actions import FAILURES, Action
from audit.models import AuditEntry
from chat.models import Bud, BudVersion, Turn
from chat.services.buds import require_edit
from chat.values import Rating, TurnStatus
from workspaces.actors import Actor

DAYS: Final = 30
MOST: Final = 10
MOST_TIMES: Final = 20_000
_READ: Final = Q(prompt_tokens__gt=0)
_WRITTEN: Final = Q(completion_tokens__gt=0)
_BAD: Final = (TurnStatus.FAILED.value, TurnStatus.INTERRUPTED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFaults:
    """A tool with what went wrong."""

    server: str
    tool: str
    calls: int
    failed: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudQuality:
    """Numbers of the last days."""

    days: int
    turns: int
    people: int
    failed: int
    stopped: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None
    """Of what has a known price; None: nothing has."""
    unpriced: int
    """Questions that the cost leaves out, because a price is not known."""
    liked: int
    """Answers that people rated as good."""
    disliked: int
    p50_ms: int | None
    """Half of the answers took no longer, waits left out."""
    p95_ms: int | None
    tools: list[ToolFaults]
    """Those that failed or were refused, the worst first."""


def quality_of(*, bud: Bud, actor: Actor) -> BudQuality:
    """Count a bud's last days.

    Raises:
        PermissionDenied: the actor may not edit the bud.
    """
    require_edit(bud, actor)
    since = timezone.now() - timedelta(days=DAYS)
    turns = Turn.objects.for_workspace(bud.workspace_id).answered_by(bud)
    turns = turns.filter(created_at__gte=since)
    sums = turns.aggregate(
        # First: below, these names are the sums.
        unpriced=Count("pk", filter=Q(cost=None) & (_READ | _WRITTEN)),
        turns=Count("pk"),
        people=Count("asked_by", distinct=True),
        failed=Count("pk", filter=Q(status__in=_BAD)),
        stopped=Count("pk", filter=Q(status=TurnStatus.CANCELLED.value)),
        prompt_tokens=Sum("prompt_tokens"),
        completion_tokens=Sum("completion_tokens"),
        cost=Sum("cost"),
        liked=Count("pk", filter=Q(rating=Rating.GOOD.value)),
        disliked=Count("pk", filter=Q(rating=Rating.BAD.value)),
    )
    done = turns.filter(status=TurnStatus.COMPLETED.value).order_by("-id")
    times = sorted(done.values_list("work_ms", flat=True)[:MOST_TIMES])
    return BudQuality(
        days=DAYS,
        turns=sums["turns"],
        people=sums["people"],
        failed=sums["failed"],
        stopped=sums["stopped"],
        prompt_tokens=sums["prompt_tokens"] or 0,
        completion_tokens=sums["completion_tokens"] or 0,
        cost=sums["cost"],
        unpriced=sums["unpriced"],
        liked=sums["liked"],
        disliked=sums["disliked"],
        p50_ms=_share(times, 0.5),
        p95_ms=_share(times, 0.95),
        tools=_faults(bud, since),
    )


def _names_of(bud: Bud) -> set[str]:
    """Give what the bud is and was called: the log keeps the name of the time, and finds entries by it."""
    versions = BudVersion.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    return {bud.name, *filter(None, versions.values_list("values__name", flat=True))}


def _faults(bud: Bud, since: object) -> list[ToolFaults]:
    refused = Q(action=Action.TOOL_CALL_REFUSED.value)
    ended = Q(action=Action.TOOL_CALL_FINISHED.value)
    rows = (
        AuditEntry.objects.for_workspace(bud.workspace_id)
        .filter(refused | ended, bud_name__in=_names_of(bud), bud_id=bud.pk, created_at__gte=since)
        .order_by()
        .values("server_name", "tool_name")
        .annotate(
            calls=Count("pk"),
            failed=Count("pk", filter=ended & Q(outcome__in=FAILURES)),
            refused=Count("pk", filter=refused),
        )
        .filter(Q(failed__gt=0) | Q(refused__gt=0))
    )
    found = [
        ToolFaults(
            server=row["server_name"],
            tool=row["tool_name"],
            calls=row["calls"],
            failed=row["failed"],
            refused=row["refused"],
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (-(one.failed + one.refused), one.server, one.tool))[:MOST]


def _share(times: list[int], share: float) -> int | None:
    return times[min(len(times) - 1, int(len(times) * share))] if times else None
