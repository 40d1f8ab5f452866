"""What was spent in this month, for pages and reports: a workspace's sums and those of its people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.db.models import QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.models import (
    MemberSpendingLimit,
    ModelProvider,
    MonthlySpending,
    SpendingPolicy,
    WithheldReason,
)
from chat.models.spending import USUAL_WARNING
from chat.providers.base import MonthLimit
from chat.providers.months import Month, current_month
from chat.providers.spending import LimitOwner, LimitUse
from chat.providers.spending_words import begin_as_read, limit_in_words, used_in_words
from workspaces.database import database_now
from workspaces.models import User, Workspace
from workspaces.words.formats import money


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The sums of one subject in one month."""

    requests: int = 0
    tokens: int = 0
    estimated_tokens: int = 0
    """Of the tokens: those that no provider has told."""
    unpriced_tokens: int = 0
    """Of the tokens: those that the cost leaves out, since their price is not known."""
    cost: Decimal = Decimal(0)

    @classmethod
    def of(cls, row: MonthlySpending | None) -> Spent:
        """As it is stored; without a row, nothing was spent."""
        if row is None:
            return cls()
        names = ("requests", "tokens", "estimated_tokens", "unpriced_tokens", "cost")
        return cls(**{name: getattr(row, name) for name in names})

    @property
    def known_cost(self) -> Decimal | None:
        """The cost; None: no price is known of anything that was used."""
        return None if 0 < self.tokens == self.unpriced_tokens else self.cost

    @property
    def cost_in_words(self) -> str:
        """The same in words, or why there is none."""
        cost = self.known_cost
        return _("%(cost)s USD") % {"cost": money(cost)} if cost is not None else _("no price set")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitStatus:
    """A limit and what was spent; the limit may be none."""

    line: LimitUse
    spent: Spent
    name: str = ""
    """Of the shared provider; empty: it is the workspace's or a person's."""
    warn_percent: int = USUAL_WARNING

    @property
    def has_limit(self) -> bool:
        """Whether there is one."""
        return not self.line.limit.is_none

    @property
    def in_words(self) -> str:
        """How much of it is used, in words."""
        return used_in_words(self.line) if self.has_limit else ""

    @property
    def limit_in_words(self) -> str:
        """The limit in words; empty: there is none."""
        return limit_in_words(self.line.limit)

    @property
    def percent(self) -> int:
        """How much of it is used."""
        return self.line.percent

    @property
    def share(self) -> int:
        """The same for a bar, which has an end."""
        return min(self.percent, 100)

    @property
    def tone(self) -> str:
        """How a bar of it looks."""
        if self.line.is_reached:
            return "bad"
        return "warn" if self.percent >= self.warn_percent else "ok"

    @property
    def cost_left(self) -> Decimal | None:
        """What may still be spent; None: the cost has no limit."""
        most = self.line.limit.cost
        return None if most is None else max(Decimal(0), most - self.line.cost)

    @property
    def tokens_left(self) -> int | None:
        """The same of tokens."""
        most = self.line.limit.tokens
        return None if most is None else max(0, most - self.line.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceMonth:
    """What models cost a workspace in this month."""

    month: Month
    policy: SpendingPolicy
    """As it is stored, or without limits."""
    workspace: LimitStatus
    shared: Sequence[LimitStatus]
    """Of the shared providers for which the platform's owner has set limits."""

    @property
    def member_limit(self) -> MonthLimit:
        """Of each member who has no limit of their own."""
        return usual_limit(self.policy)

    @property
    def begins_anew(self) -> SafeString:
        """When the next month begins, in words."""
        return begin_as_read(self.month)

    @property
    def standings(self) -> list[LimitStatus]:
        """All that have limits."""
        return [one for one in (self.workspace, *self.shared) if one.has_limit]


def policy_of(workspace_id: UUID) -> SpendingPolicy:
    """The limits of a workspace; without any, a row that is not stored."""
    rows = SpendingPolicy.objects.for_workspace(workspace_id)
    found: SpendingPolicy | None = rows.first()
    return found or SpendingPolicy(workspace_id=workspace_id)


def month_of_workspace(workspace_id: UUID) -> WorkspaceMonth:
    """The month of a workspace, in three statements."""
    policy = policy_of(workspace_id)
    month = current_month(policy.time_zone)
    rows = MonthlySpending.objects.for_workspace(workspace_id).filter(month=month.key, person=None)
    sums = {row.subject: row for row in rows}
    limited = (
        ModelProvider.objects.for_workspace(workspace_id)
        .exclude(shared=None)
        .exclude(withheld=WithheldReason.WITHDRAWN.value)
        .exclude(most_cost_a_month=None, most_tokens_a_month=None)
        .order_by("name")
    )
    spent = Spent.of(sums.get(workspace_id))
    limit = MonthLimit(cost=policy.cost, tokens=policy.tokens)
    return WorkspaceMonth(
        month=month,
        policy=policy,
        workspace=LimitStatus(
            line=_line(LimitOwner.WORKSPACE, workspace_id, limit, spent),
            spent=spent,
            warn_percent=policy.warn_percent,
        ),
        shared=[
            LimitStatus(
                name=row.name,
                line=_line(LimitOwner.PROVIDER, row.shared_id, limit_of_part(row), used),
                spent=used,
                warn_percent=policy.warn_percent,
            )
            for row in limited
            if row.shared_id is not None
            for used in [Spent.of(sums.get(row.shared_id))]
        ],
    )


def limit_of_part(row: ModelProvider) -> MonthLimit:
    """What the platform's owner lets a workspace use of a shared provider."""
    return MonthLimit(cost=row.most_cost_a_month, tokens=row.most_tokens_a_month)


def _line(whose: LimitOwner, subject: UUID, limit: MonthLimit, spent: Spent) -> LimitUse:
    return LimitUse(whose=whose, subject=subject, limit=limit, cost=spent.cost, tokens=spent.tokens)


def standings_of(
    workspace_id: UUID, people: Sequence[UUID], policy: SpendingPolicy, month: Month
) -> dict[UUID, LimitStatus]:
    """The month of some people of a workspace, each with the limit that holds for them. Two statements."""
    rows = MonthlySpending.objects.for_workspace(workspace_id)
    sums = {row.subject: row for row in rows.filter(month=month.key, subject__in=people)}
    own = own_limits(workspace_id, people)
    usual = usual_limit(policy)
    return {
        pk: LimitStatus(
            line=_line(LimitOwner.MEMBER, pk, own.get(pk, usual), spent),
            spent=spent,
            warn_percent=policy.warn_percent,
        )
        for pk in people
        for spent in [Spent.of(sums.get(pk))]
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonMonth:
    """What a person's questions cost in this month."""

    month: Month
    standing: LimitStatus
    usual: MonthLimit
    """What all members may spend who have no limit of their own."""

    @property
    def begins_anew(self) -> SafeString:
        """When the next month begins, in words."""
        return begin_as_read(self.month)


def month_of_person(workspace_id: UUID, person_id: UUID) -> PersonMonth:
    """The month of one person in a workspace, in three statements."""
    policy = policy_of(workspace_id)
    month = current_month(policy.time_zone)
    return PersonMonth(
        month=month,
        standing=standings_of(workspace_id, [person_id], policy, month)[person_id],
        usual=usual_limit(policy),
    )


def usual_limit(policy: SpendingPolicy) -> MonthLimit:
    """What each member may spend who has no limit of their own."""
    return MonthLimit(cost=policy.member_cost, tokens=policy.member_tokens)


def own_limits(workspace_id: UUID, people: Sequence[UUID]) -> dict[UUID, MonthLimit]:
    """The limits that were set for single people among these; one of nothing says that there is none."""
    rows = MemberSpendingLimit.objects.for_workspace(workspace_id).filter(person_id__in=people)
    return {row.person_id: MonthLimit(cost=row.cost, tokens=row.tokens) for row in rows}


def most_spending(workspace_id: UUID, month: Month, most: int) -> list[tuple[User, Spent]]:
    """The people whose questions cost most, or used most tokens where no price is known."""
    rows: QuerySet[MonthlySpending] = MonthlySpending.objects.for_workspace(workspace_id).filter(
        month=month.key, person__isnull=False
    )
    found = rows.select_related("person").order_by("-cost", "-tokens", "id")[:most]
    return [(row.person, Spent.of(row)) for row in found if row.person is not None]


def spent_of_shared(shared_id: UUID, workspaces: Sequence[Workspace]) -> dict[UUID, Spent]:
    """What some workspaces used of a shared provider in their month of now, by their ids. Three statements."""
    ids = [one.pk for one in workspaces]
    zones = dict(
        SpendingPolicy.objects.across_workspaces()
        .filter(workspace__in=ids)
        .values_list("workspace_id", "time_zone")
    )
    now = database_now()
    months = {pk: Month.of(now, zones.get(pk, "")).key for pk in ids}
    rows = MonthlySpending.objects.across_workspaces().filter(
        shared=shared_id, workspace__in=ids, month__in=set(months.values())
    )
    found = {row.workspace_id: row for row in rows if row.month == months[row.workspace_id]}
    return {pk: Spent.of(found.get(pk)) for pk in ids}
