"""What the log's reports ask of chats: which models were used, and what for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Sum

from audit.reports.providers import Usage, register_usage
from chat.models import Turn


def tell_reports() -> None:
    """Register with the log's reports."""
    register_usage(usage)


def usage(workspace_id: UUID, since: datetime, until: datetime) -> Sequence[Usage]:
    """Give turns, tokens and cost of each model: no person's, and no conversation's."""
    rows = (
        Turn.objects.for_workspace(workspace_id)
        .filter(created_at__gte=since, created_at__lt=until)
        .order_by()
        .values_list("model")
        .annotate(Count("pk"), Sum("prompt_tokens"), Sum("completion_tokens"), Sum("cost"))
    )
    return [
        Usage(
            model=model, turns=turns, prompt_tokens=prompt, completion_tokens=completion, cost=cost
        )
        for model, turns, prompt, completion, cost in rows
    ]
