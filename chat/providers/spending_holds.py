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

from chat.models import Turn
from chat.models.spending import MOST_COST
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.known_models import Prices
from chat.providers.spending import Bill, Payer, allowance_in, unread_allowance
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
