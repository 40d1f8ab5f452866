"""Who pays for a request to a model, what they may still spend in this month, and what the request adds to that.

Everything that asks a model needs an `Allowance` for it, and `limits` refuses where one of its limits is reached. Sums
are rows of a month. What adds to them is the transaction that stores what a request used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Subquery, Sum
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from audit.services import Ref
from chat.models import (
    MemberSpendingLimit,
    MonthlySpending,
    SpendingHold,
    SpendingPolicy,
    Turn,
)
from chat.models.spending import USUAL_WARNING
from chat.providers.base import MonthLimit, ProviderSpec, TokenCount
from chat.providers.known_models import (
    Prices,
    embedding_prices,
    known_facts,
    prices_of,
    without_answers,
)
from chat.providers.months import Month, current_month
from chat.values import TurnStatus
from workspaces.actors import Actor
from workspaces.database import statement_cursor
from workspaces.database.prepared import PreparedRows
from workspaces.models import Workspace

_NOBODY: Final = UUID(int=0)
_SMALLEST: Final = Decimal("0.000001")
_FULL: Final = 100


class LimitOwner(StrEnum):
    """The limits that a request can meet."""

    MEMBER = "member"
    WORKSPACE = "workspace"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """For whom a model is asked, as the log says it where that is refused."""

    workspace_id: UUID
    person_id: UUID | None = None
    """None: nobody in particular, so only the workspace pays."""
    actor: Actor
    purpose: str
    """What for, in a word or two."""
    bud: Ref | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None


def _is_up(used: Decimal | int, most: Decimal | int | None) -> bool:
    return most is not None and used >= most


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """One limit, and what is used of it."""

    whose: LimitOwner
    subject: UUID
    limit: MonthLimit
    cost: Decimal = Decimal(0)
    tokens: int = 0
    held_cost: Decimal = Decimal(0)
    held_tokens: int = 0
    """What other requests under way are believed to use of it."""

    @property
    def is_reached(self) -> bool:
        """Whether it is used up. A limit of 0 is reached from the start."""
        return self.is_cost_reached or _is_up(self.tokens, self.limit.tokens)

    @property
    def is_cost_reached(self) -> bool:
        """The same of the cost alone."""
        return _is_up(self.cost, self.limit.cost)

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be asked now: it is used up, or will be by what is under way."""
        return _is_up(self.cost + self.held_cost, self.limit.cost) or _is_up(
            self.tokens + self.held_tokens, self.limit.tokens
        )

    @property
    def percent(self) -> int:
        """How much of it is used, of the one of cost and tokens of which it is more; rounded down."""
        shares = [
            int(used * _FULL / most) if most else _FULL
            for used, most in (
                (self.cost, self.limit.cost),
                (Decimal(self.tokens), self.limit.tokens),
            )
            if most is not None
        ]
        return max(shares, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What may be spent, as it was read before a request."""

    payer: Payer
    zone: str = ""
    """In which the workspace's months begin."""
    lines: tuple[LimitUse, ...] = ()
    """The limits that there are: the person's, the workspace's, and that of a shared provider."""
    warn_percent: int = USUAL_WARNING
    shared_id: UUID | None = None
    """The shared provider that it was read for."""

    @property
    def reached(self) -> LimitUse | None:
        """The first limit that is used up, else the first that is full; None: a model may be asked."""
        used_up = (line for line in self.lines if line.is_reached)
        full = (line for line in self.lines if line.is_full)
        return next(used_up, None) or next(full, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Who pays for a request, and by which prices."""

    allowance: Allowance
    prices: Prices
    """The workspace's."""
    list_prices: Prices
    """The provider's own, which hold for the limit of a shared one: workspaces cannot change them."""

    @classmethod
    def of(cls, allowance: Allowance, spec: ProviderSpec, prices: Prices) -> Bill:
        """For a model, with the workspace's prices for it."""
        listed = Prices()
        if spec.shared_id is not None:
            listed = prices_of(spec.base_url, spec.model, prompt=None, completion=None)
        return cls(allowance=allowance, prices=prices, list_prices=listed)


def bill_for(payer: Payer, spec: ProviderSpec) -> Bill:
    """Read what a payer may spend on a model, and its prices, for a request that is no step of an answer."""
    return Bill.of(allowance_for(payer, spec), spec, known_facts(payer.workspace_id, spec).prices)


def embedding_bill(payer: Payer, spec: ProviderSpec) -> Bill:
    """The same of a model for embeddings, which writes nothing."""
    bill = Bill.of(allowance_for(payer, spec), spec, embedding_prices(payer.workspace_id, spec))
    return replace(bill, list_prices=without_answers(bill.list_prices))


def allowance_for(payer: Payer, spec: ProviderSpec) -> Allowance:
    """Read what a payer may spend at a provider."""
    return allowance_in(payer, spec, zone_of(payer.workspace_id))


def zone_of(workspace_id: UUID) -> str | None:
    """In which time zone a workspace's months begin; None: it has set no limits."""
    policies = SpendingPolicy.objects.for_workspace(workspace_id)
    zone: str | None = policies.values_list("time_zone", flat=True).first()
    return zone


def unread_allowance(payer: Payer, spec: ProviderSpec) -> Allowance:
    """Where there are no limits, or nobody has looked."""
    return Allowance(payer=payer, shared_id=spec.shared_id)


def allowance_in(
    payer: Payer, spec: ProviderSpec, zone: str | None, *, own_turn: UUID = _NOBODY
) -> Allowance:
    """The same where the time zone of the workspace's policy is known. Without limits nothing is read.

    Args:
        zone: None: the workspace has set no limits.
        own_turn: whose request this is. What it holds itself does not stand in its way.
    """
    if zone is None and spec.month_limit.is_none:
        return unread_allowance(payer, spec)
    row = _STANDING.first_values(
        payer.workspace_id,
        payer.person_id or _NOBODY,
        spec.shared_id or _NOBODY,
        current_month(zone or "").key,
        own_turn,
    )
    assert row is not None
    return _allowance(payer, spec, zone or "", row)


def _allowance(payer: Payer, spec: ProviderSpec, zone: str, row: tuple[Any, ...]) -> Allowance:
    warn, has_own, *values = row
    limits = [_limit(*values[at : at + 2]) for at in (0, 2, 4)]
    sums = [_sums(*values[at : at + 6]) for at in (6, 12, 18)]
    of_workspace, usual, own = limits
    found = []
    if payer.person_id is not None:
        found.append((LimitOwner.MEMBER, payer.person_id, own if has_own else usual, sums[1]))
    found.append((LimitOwner.WORKSPACE, payer.workspace_id, of_workspace, sums[0]))
    if spec.shared_id is not None:
        found.append((LimitOwner.PROVIDER, spec.shared_id, spec.month_limit, sums[2]))
    return Allowance(
        payer=payer,
        zone=zone,
        lines=tuple(
            replace(used, whose=whose, subject=subject, limit=limit)
            for whose, subject, limit, used in found
            if not limit.is_none
        ),
        warn_percent=warn or USUAL_WARNING,
        shared_id=spec.shared_id,
    )


def _limit(cost: Any, tokens: Any) -> MonthLimit:
    return MonthLimit(
        cost=None if cost is None else exact_cost(cost),
        tokens=None if tokens is None else int(tokens),
    )


def _sums(cost: Any, tokens: Any, *held: Any) -> LimitUse:
    """A limit of nobody yet, with what is used of it.

    Args:
        held: costs and tokens, by turns.
    """
    return LimitUse(
        whose=LimitOwner.WORKSPACE,
        subject=_NOBODY,
        limit=MonthLimit(),
        cost=exact_cost(cost or 0),
        tokens=int(tokens or 0),
        held_cost=sum((exact_cost(one or 0) for one in held[::2]), Decimal(0)),
        held_tokens=sum(int(one or 0) for one in held[1::2]),
    )


def exact_cost(cost: Any) -> Decimal:
    """A cost as a driver gives it, with its six decimals."""
    return Decimal(str(cost)).quantize(_SMALLEST)


def _standing(
    workspace_id: UUID, person_id: UUID, shared_id: UUID, month: int, own_turn: UUID
) -> Any:
    """Every limit and every sum that one request may meet, and what is held of them, in one statement."""
    policy = SpendingPolicy.objects.for_workspace(workspace_id).order_by()
    own = MemberSpendingLimit.objects.for_workspace(workspace_id).filter(person_id=person_id)
    sums = MonthlySpending.objects.for_workspace(workspace_id).filter(month=month).order_by()
    held = _held(workspace_id).exclude(pk=own_turn)
    beside = SpendingHold.objects.for_workspace(workspace_id).filter(alive_until__gt=Now())
    beside = beside.order_by()
    subjects = (
        (workspace_id, held, beside, "cost"),
        (person_id, held.filter(asked_by_id=person_id), beside.filter(person=person_id), "cost"),
        (
            shared_id,
            held.filter(held_shared=shared_id),
            beside.filter(shared=shared_id),
            "shared_cost",
        ),
    )
    wanted = [
        policy.values("warn_percent"),
        own.order_by().values("pk"),
        *(policy.values(name) for name in ("cost", "tokens", "member_cost", "member_tokens")),
        *(own.order_by().values(name) for name in ("cost", "tokens")),
        *(
            one
            for subject, turns, others, cost in subjects
            for one in (
                *(sums.filter(subject=subject).values(name) for name in ("cost", "tokens")),
                *(_total(turns, f"held_{name}") for name in (cost, "tokens")),
                *(_total(others, name) for name in (cost, "tokens")),
            )
        ),
    ]
    columns = {f"column_{at}": Subquery(one[:1]) for at, one in enumerate(wanted)}
    return Workspace.objects.filter(pk=workspace_id).annotate(**columns).values_list(*columns)


def _held(workspace_id: UUID) -> Any:
    """Turns that hold something: those that somebody works on. Where a process dies, its lease ends."""
    rows = Turn.objects.for_workspace(workspace_id).filter(
        status=TurnStatus.RUNNING.value, lease_until__gt=Now(), held_tokens__isnull=False
    )
    return rows.order_by()


def _total(rows: Any, name: str) -> Any:
    return rows.values("workspace_id").annotate(total=Sum(name)).values("total")


_STANDING = PreparedRows[Workspace](_standing, UUID, UUID, UUID, int, UUID)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedThreshold:
    """A limit of which so much is used now that people are told."""

    line: LimitUse
    percent: int
    """At least so much: the warning's, or 100."""
    month: Month


def add_to_month(bill: Bill, usage: TokenCount, now: datetime) -> list[CrossedThreshold]:
    """Add what a request used to the sums of its month. In the caller's transaction, and best at its end.

    The workspace's row is the last one: whoever holds it needs no other.

    Returns:
        What people are to be told of now, each once in a month.
    """
    if not usage.total:
        return []
    allowance = bill.allowance
    payer = allowance.payer
    month = Month.of(now, allowance.zone)
    rows = [_row(payer.workspace_id, month, bill.prices.cost_of(usage), usage)]
    if allowance.shared_id is not None:
        cost = bill.list_prices.cost_of(usage)
        rows.insert(0, _row(allowance.shared_id, month, cost, usage, shared_id=allowance.shared_id))
    if payer.person_id is not None:
        cost = bill.prices.cost_of(usage)
        rows.insert(0, _row(payer.person_id, month, cost, usage, person_id=payer.person_id))
    for row in rows:
        row.workspace_id = payer.workspace_id
    sums = _upsert(rows, now)
    found = []
    for line in allowance.lines:
        cost, tokens, percent_told = sums[line.subject]
        line_now = replace(line, cost=cost, tokens=tokens)
        levels = (allowance.warn_percent, _FULL)
        percent = max((one for one in levels if line_now.percent >= one), default=0)
        if percent > percent_told:
            _note_told(payer.workspace_id, line.subject, month, percent)
            found.append(CrossedThreshold(line=line_now, percent=percent, month=month))
    return found


def _note_told(workspace_id: UUID, subject: UUID, month: Month, percent: int) -> None:
    """Nobody else is telling: the row is ours until the transaction ends."""
    rows = MonthlySpending.objects.for_workspace(workspace_id)
    rows.filter(month=month.key, subject=subject).update(told_percent=percent)


def _row(
    subject: UUID, month: Month, cost: Decimal | None, usage: TokenCount, **whose: UUID
) -> MonthlySpending:
    return MonthlySpending(
        month=month.key,
        subject=subject,
        requests=1,
        tokens=usage.total,
        estimated_tokens=usage.total if usage.is_estimate else 0,
        unpriced_tokens=usage.total if cost is None else 0,
        cost=cost or Decimal(0),
        **whose,
    )


_KEY: Final = ("workspace_id", "month", "subject")
_SUMS: Final = ("requests", "tokens", "estimated_tokens", "unpriced_tokens", "cost")


def _upsert(rows: list[MonthlySpending], now: datetime) -> dict[UUID, tuple[Decimal, int, int]]:
    """Insert rows, or add to those that are there; the ORM can only replace. Gives cost, tokens and what was told."""
    for row in rows:
        row.id, row.created_at, row.updated_at = uuid7(), now, now
    fields: list[Any] = list(MonthlySpending._meta.local_concrete_fields)
    quote = connection.ops.quote_name
    table = quote(MonthlySpending._meta.db_table)
    names = ", ".join(quote(field.column) for field in fields)
    places = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(rows))
    added = [f"{quote(one)} = {table}.{quote(one)} + excluded.{quote(one)}" for one in _SUMS]
    added.append(f"{quote('updated_at')} = excluded.{quote('updated_at')}")
    sql = (
        f"INSERT INTO {table} ({names}) VALUES {places}"  # noqa: S608  names of our own
        f" ON CONFLICT ({', '.join(map(quote, _KEY))}) DO UPDATE SET {', '.join(added)}"
        " RETURNING subject, cost, tokens, told_percent"
    )
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection)
        for row in rows
        for field in fields
    ]
    with statement_cursor(connection) as cursor:
        cursor.execute(sql, values)
        found = cursor.fetchall()
    return {
        UUID(str(subject)): (exact_cost(cost), int(tokens), int(percent_told))
        for subject, cost, tokens, percent_told in found
    }
