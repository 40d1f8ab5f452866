"""What one person's questions have cost: tokens and money, by bud and model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from chat.models import Turn
from workspaces.database import database_now
from workspaces.models import User, Workspace

PERIODS: Final = (7, 30)
"""Days that people can choose among."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What one bud used of one model."""

    bud: str
    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    cost: Decimal | None
    """In US dollars; None: nothing of it has a known price."""
    unpriced: int
    """Questions whose price is not known, and which the cost leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUsage:
    """All of it, and the sums."""

    days: int
    since: datetime
    rows: Sequence[ModelUsage]

    @property
    def questions(self) -> int:
        """How many were asked."""
        return sum(row.questions for row in self.rows)

    @property
    def prompt_tokens(self) -> int:
        """Tokens that models read."""
        return sum(row.prompt_tokens for row in self.rows)

    @property
    def completion_tokens(self) -> int:
        """Tokens that models wrote."""
        return sum(row.completion_tokens for row in self.rows)

    @property
    def cost(self) -> Decimal | None:
        """Of what has a known price; None: of nothing."""
        known = [row.cost for row in self.rows if row.cost is not None]
        return sum(known, Decimal(0)) if known else None

    @property
    def unpriced(self) -> int:
        """Questions that the cost leaves out."""
        return sum(row.unpriced for row in self.rows)


def usage_of(*, workspace: Workspace, person: User, days: int) -> OwnUsage:
    """Count a person's last days in one statement; what was erased no longer counts.

    Args:
        days: one of PERIODS.
    """
    since = database_now() - timedelta(days=days)
    rows = (
        Turn.objects.for_workspace(workspace)
        .filter(asked_by=person, created_at__gte=since)
        .order_by()
        .values("model", bud=Coalesce("mentioned_bud__name", "conversation__bud__name"))
        .annotate(
            questions=Count("pk"),
            prompt=Sum("prompt_tokens"),
            completion=Sum("completion_tokens"),
            price=Sum("cost"),
            unpriced=Count("pk", filter=Q(cost=None)),
        )
        .order_by("-questions", "bud", "model")
    )
    used = [
        ModelUsage(
            bud=row["bud"],
            model=row["model"],
            questions=row["questions"],
            prompt_tokens=row["prompt"],
            completion_tokens=row["completion"],
            cost=row["price"],
            unpriced=row["unpriced"],
        )
        for row in rows
    ]
    return OwnUsage(days=days, since=since, rows=used)
