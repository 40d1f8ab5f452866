"""What requests under way are believed to cost, kept free of a month's limits until it is known what they have cost.

A turn's row holds it from before its model is asked until the commit that stores what came of it. It counts as long
as the turn is being worked on: where a process dies, it ends with its lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Coalesce, Greatest, NullIf

from chat.models import Turn
from chat.models.spending import MOST_COST
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.known_models import Prices
from chat.providers.spending import Bill, Payer, allowance_in, unread_allowance, zone_of
from chat.values import TurnStatus
from workspaces.database import statement_cursor

USUAL_ANSWER: Final = 1_000
"""Tokens that an answer is believed to have, where its bud allows it so many."""

_LOCK: Final = 0x7470_656E
"""Beside it, a workspace's own number names the lock under which its requests are let through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A turn that is about to ask a model, as its holder knows it."""

    turn_id: UUID
    lease_token: int
    expected: TokenCount
    """What the request is believed to use."""


class _Refused(Exception):
    """Nothing is held for a request that is not made."""


def expected_usage(prompt_tokens: int, most: int | None) -> TokenCount:
    """What a request is believed to use.

    Args:
        most: tokens that its answer can have; None: nobody has said.
    """
    answer = min(most or USUAL_ANSWER, USUAL_ANSWER)
    return TokenCount(prompt=prompt_tokens, completion=answer, is_estimate=True)


def hold_for(
    payer: Payer, spec: ProviderSpec, zone: str | None, prices: Prices, asking: Asking
) -> Bill:
    """Read what a turn may spend at a provider, and keep what its request is believed to cost free for it.

    Requests of one workspace come one after the other here, so that none is let through beside what another holds.
    Without limits nothing is read and nothing held.

    Args:
        zone: of the workspace's months; None: it has set no limits.
    """
    if zone is None and spec.month_limit.is_none:
        return Bill.of(unread_allowance(payer, spec), spec, prices)
    bill = Bill.of(unread_allowance(payer, spec), spec, prices)
    try:
        with transaction.atomic():
            _hold(payer.workspace_id, spec, bill, asking)
            allowance = allowance_in(payer, spec, zone, own_turn=asking.turn_id)
            if allowance.reached is not None:
                raise _Refused
    except _Refused:
        pass
    return Bill.of(allowance, spec, prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a request beside a turn's own holds on the turn's row, such as one that a server makes during a call."""

    workspace_id: UUID
    turn_id: UUID
    tokens: int
    cost: Decimal
    shared_cost: Decimal


def hold_beside(
    payer: Payer, spec: ProviderSpec, prices: Prices, expected: TokenCount
) -> tuple[Bill, Beside | None]:
    """The same for a request that a turn's call makes. Several may be under way at one moment, so what they hold is added.

    Without a turn that somebody works on, nothing is held: the limits are read as they stand.
    """
    zone = zone_of(payer.workspace_id)
    if zone is None and spec.month_limit.is_none:
        return Bill.of(unread_allowance(payer, spec), spec, prices), None
    with transaction.atomic():
        _come_one_after_another(payer.workspace_id)
        bill = Bill.of(allowance_in(payer, spec, zone), spec, prices)
        if bill.allowance.reached is not None or payer.turn_id is None:
            return bill, None
        held = Beside(
            workspace_id=payer.workspace_id,
            turn_id=payer.turn_id,
            tokens=expected.total,
            cost=_cost_of(expected, bill.prices),
            shared_cost=_cost_of(expected, bill.list_prices),
        )
        is_held = _running(held).update(
            held_tokens=Coalesce("held_tokens", 0) + held.tokens,
            held_cost=_more("held_cost", held.cost),
            held_shared_cost=_more("held_shared_cost", held.shared_cost),
            held_shared=spec.shared_id,
        )
    return bill, held if is_held else None


def release_beside(held: Beside) -> None:
    """Let others have what such a request held: what it used has been counted."""
    rows = _running(held).filter(held_tokens__isnull=False)
    rows.update(
        held_tokens=NullIf(Greatest(F("held_tokens") - held.tokens, 0), 0),
        held_cost=Greatest(F("held_cost") - held.cost, Decimal(0)),
        held_shared_cost=Greatest(F("held_shared_cost") - held.shared_cost, Decimal(0)),
    )


def _running(held: Beside) -> Any:
    rows = Turn.objects.for_workspace(held.workspace_id)
    return rows.filter(pk=held.turn_id, status=TurnStatus.RUNNING.value)


def _more(name: str, cost: Decimal) -> Any:
    """What is held and so much more. What stands there counts only beside tokens."""
    return Case(When(held_tokens__isnull=True, then=Value(cost)), default=F(name) + cost)


def _come_one_after_another(workspace_id: UUID) -> None:
    """Let no two requests of a workspace read its limits at one moment. On SQLite the transaction itself sees to it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, str(workspace_id)]
            )


def _cost_of(expected: TokenCount, prices: Prices) -> Decimal:
    return min(prices.cost_of(expected) or Decimal(0), Decimal(MOST_COST))


def _hold(workspace_id: UUID, spec: ProviderSpec, bill: Bill, asking: Asking) -> None:
    """Write it down, and wait for others that do. What is read next in this transaction knows of theirs."""
    values = {
        "held_tokens": asking.expected.total,
        "held_cost": _cost_of(asking.expected, bill.prices),
        "held_shared_cost": _cost_of(asking.expected, bill.list_prices),
        "held_shared": spec.shared_id,
    }
    fields: list[Any] = [Turn._meta.get_field(name) for name in values]
    quote = connection.ops.quote_name
    table = quote(Turn._meta.db_table)
    changed = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    sql = f"UPDATE {table} SET {changed}"  # noqa: S608  names of our own
    params = [
        field.get_db_prep_save(value, connection)
        for field, value in zip(fields, values.values(), strict=True)
    ]
    if connection.vendor == "postgresql":
        # One statement for both: the next one sees what was committed while this one waited.
        sql += " FROM (SELECT pg_advisory_xact_lock(%s, hashtext(%s))) AS waited"
        params += [_LOCK, str(workspace_id)]
    sql += f" WHERE {table}.id = %s AND {table}.workspace_id = %s AND {table}.lease_token = %s"
    uuid = Turn._meta.pk
    params += [uuid.get_db_prep_value(one, connection) for one in (asking.turn_id, workspace_id)]
    with statement_cursor(connection) as cursor:
        cursor.execute(sql, [*params, asking.lease_token])
