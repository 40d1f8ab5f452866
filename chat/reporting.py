"""What the log's reports ask of chats: which models were used, and what for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db.models import Count, Min, Q, Sum
from django.urls import reverse
from django.utils.translation import gettext as _

from audit.reports.providers import (
    Job,
    ReportSource,
    Spender,
    Spending,
    SpendingLimit,
    Usage,
    WaitingCall,
    register_rules,
    register_source,
)
from chat.models import CheckResult, KnowledgePreparation, ToolCall, Turn, WebhookDelivery
from chat.providers.spending_months import month_of_workspace, most_spending
from chat.providers.spending_refusals import RULES
from chat.providers.spending_words import begin_as_read
from chat.values import ToolCallStatus
from workspaces.delivery.outbox import state_of
from workspaces.models import Workspace

_MOST_SPENDERS: Final = 5


def tell_reports() -> None:
    """Register with the log's reports."""
    register_source(
        ReportSource(models=usage, approvals=approvals, jobs=jobs, spending=spending_report)
    )
    register_rules(RULES)


def usage(workspace_id: UUID, since: datetime, until: datetime) -> Sequence[Usage]:
    """Give turns, tokens and cost of each model: no person's, and no conversation's."""
    rows = (
        Turn.objects.for_workspace(workspace_id)
        .filter(created_at__gte=since, created_at__lt=until)
        .order_by()
        .values_list("model")
        .annotate(Count("pk"), Sum("prompt_tokens"), Sum("completion_tokens"), Sum("cost"))
    )
    asked = [_usage(*row) for row in rows]
    return [
        *_together(asked, _checked(workspace_id, since, until)),
        *_prepared(workspace_id, since, until),
    ]


def _checked(workspace_id: UUID, since: datetime, until: datetime) -> Sequence[Usage]:
    """What checks of buds have used whose runs are over: their turns are deleted."""
    rows = (
        CheckResult.objects.for_workspace(workspace_id)
        .filter(run__finished_at__isnull=False, prompt_tokens__gt=0)
        .filter(finished_at__gte=since, finished_at__lt=until)
        .order_by()
        .values_list("model")
        .annotate(Count("pk"), Sum("prompt_tokens"), Sum("completion_tokens"), Sum("cost"))
    )
    return [_usage(*row) for row in rows]


def _usage(model: str, turns: int, prompt: int, completion: int, cost: Decimal | None) -> Usage:
    return Usage(
        model=model, turns=turns, prompt_tokens=prompt, completion_tokens=completion, cost=cost
    )


def _together(some: Sequence[Usage], others: Sequence[Usage]) -> Sequence[Usage]:
    """One row for each model."""
    found = {one.model: one for one in some}
    for other in others:
        one = found.get(other.model)
        found[other.model] = other if one is None else _sum(one, other)
    return list(found.values())


def _sum(one: Usage, other: Usage) -> Usage:
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return Usage(
        model=one.model,
        turns=one.turns + other.turns,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
        cost=sum(costs, Decimal(0)) if costs else None,
    )


def _prepared(workspace_id: UUID, since: datetime, until: datetime) -> Sequence[Usage]:
    """What it cost to prepare knowledge files that are still there."""
    rows = (
        KnowledgePreparation.objects.for_workspace(workspace_id)
        .filter(created_at__gte=since, created_at__lt=until, tokens__gt=0)
        .order_by()
        .values_list("model")
        .annotate(Sum("tokens"), Sum("cost"))
    )
    return [
        Usage(model=model, turns=0, prompt_tokens=tokens, completion_tokens=0, cost=cost)
        for model, tokens, cost in rows
    ]


def spending_report(workspace_id: UUID) -> Spending:
    """Give what models cost in this month, how much of each limit is used, and who used most."""
    found = month_of_workspace(workspace_id)
    spent = found.workspace.spent
    slug = Workspace.objects.values_list("slug", flat=True).get(pk=workspace_id)
    return Spending(
        begins_anew=begin_as_read(found.month),
        tokens=spent.tokens,
        cost=spent.known_cost,
        unpriced_tokens=spent.unpriced_tokens,
        limits=[
            SpendingLimit(
                name=one.name or _("This workspace"), text=one.in_words, percent=one.percent
            )
            for one in found.standings
        ],
        most=[
            Spender(person=person.email, tokens=used.tokens, cost=used.known_cost)
            for person, used in most_spending(workspace_id, found.month, _MOST_SPENDERS)
        ],
        url=reverse("chat:spending", args=[slug]),
    )


def approvals(workspace_id: UUID, most: int) -> Sequence[WaitingCall]:
    """Give the calls that wait for approval; what they would do is for those who decide."""
    rows = (
        ToolCall.objects.for_workspace(workspace_id)
        .filter(status=ToolCallStatus.WAITING_FOR_APPROVAL.value)
        .order_by("created_at", "pk")
        .values_list(
            "pk", "server_name", "tool_name", "turn__conversation__owner__email", "created_at"
        )
    )
    return [
        WaitingCall(call_id=pk, server=server, tool=tool, person=person, since=since)
        for pk, server, tool, person, since in rows[:most]
    ]


def jobs(workspace_id: UUID) -> Sequence[Job]:
    """Give the messages to programs, and the files that are prepared to be found by meaning."""
    state = state_of(WebhookDelivery.objects.for_workspace(workspace_id))
    return [
        Job(
            name=_("Webhooks of chats"),
            waiting=state.waiting,
            oldest=state.oldest,
            failed=state.given_up,
            note=state.fault,
        ),
        _preparing(workspace_id),
    ]


def _preparing(workspace_id: UUID) -> Job:
    rows = KnowledgePreparation.objects.for_workspace(workspace_id).filter(finished_at=None)
    found = rows.aggregate(
        waiting=Count("pk"), oldest=Min("due_at"), failed=Count("pk", filter=~Q(fault=""))
    )
    note = rows.exclude(fault="").values_list("fault", flat=True).first() if found["failed"] else ""
    return Job(name=_("Knowledge files searched by meaning"), note=note or "", **found)
