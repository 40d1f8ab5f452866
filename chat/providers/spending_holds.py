"""What requests under way are believed to cost, kept free of a month's limits until it is known what they have cost.

A turn's row holds it from before its model is asked until the commit that stores what came of it. It counts as long
as the turn is being worked on: where a process dies, it ends with its lease. Requests beside the steps of turns have
rows of their own, with a lease too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from uuid_utils.compat import uuid7

from chat.models import SpendingHold, Turn
from chat.models.spending import MOST_COST
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.known_models import Prices
from chat.providers.limits import LEASE, keep_renewing
from chat.providers.spending import Bill, Payer, allowance_in, unread_allowance
from workspaces.database import database_now, in_database, statement_cursor

USUAL_ANSWER: Final = 1_000
"""Tokens that an answer is believed to have, where its bud allows it so many."""

_LOCK: Final = 0x7470_656E
"""Beside it, a workspace's own number names the lock under which its requests are let through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestingTurn:
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
    payer: Payer, spec: ProviderSpec, zone: str | None, prices: Prices, asking: RequestingTurn
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


@asynccontextmanager
async def held_beside(
    bill: Bill | None, spec: ProviderSpec, expected: TokenCount
) -> AsyncGenerator[Bill | None, None]:
    """Hold the same for a request that is no step of a turn, such as one for a title, until it has been counted.

    Gives what is left to it, read beside what all others hold.
    """
    if bill is None or not bill.allowance.lines:
        yield bill
        return
    hold_id = uuid7()
    renewing: asyncio.Task[None] | None = None
    try:
        bill = await in_database(_hold_beside, hold_id, bill, spec, expected)
        renewing = asyncio.create_task(
            keep_renewing(_put_off, bill.allowance.payer.workspace_id, hold_id)
        )
        yield bill
    finally:
        if renewing is not None:
            renewing.cancel()
        # Also where the caller was cancelled: nobody else would let others have it before its lease runs out.
        await asyncio.shield(in_database(_release, bill.allowance.payer.workspace_id, hold_id))


@transaction.atomic
def _hold_beside(hold_id: UUID, bill: Bill, spec: ProviderSpec, expected: TokenCount) -> Bill:
    payer = bill.allowance.payer
    _come_one_after_another(payer.workspace_id)
    bill = replace(bill, allowance=allowance_in(payer, spec, bill.allowance.zone))
    if bill.allowance.reached is not None:
        return bill
    rows = SpendingHold.objects.for_workspace(payer.workspace_id)
    now = database_now()
    rows.filter(alive_until__lte=now).delete()
    SpendingHold.objects.create(
        id=hold_id,
        workspace_id=payer.workspace_id,
        person=payer.person_id,
        shared=spec.shared_id,
        tokens=expected.total,
        cost=_cost_of(expected, bill.prices),
        shared_cost=_cost_of(expected, bill.list_prices),
        alive_until=now + LEASE,
    )
    return bill


def _put_off(workspace_id: UUID, hold_id: UUID) -> None:
    rows = SpendingHold.objects.for_workspace(workspace_id).filter(pk=hold_id)
    rows.update(alive_until=database_now() + LEASE)


def _release(workspace_id: UUID, hold_id: UUID) -> None:
    SpendingHold.objects.for_workspace(workspace_id).filter(pk=hold_id).delete()


def _come_one_after_another(workspace_id: UUID) -> None:
    """Let no two requests of a workspace read its limits at one moment. On SQLite the transaction itself sees to it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, str(workspace_id)]
            )


def _cost_of(expected: TokenCount, prices: Prices) -> Decimal:
    return min(prices.cost_of(expected) or Decimal(0), Decimal(MOST_COST))


def _hold(workspace_id: UUID, spec: ProviderSpec, bill: Bill, asking: RequestingTurn) -> None:
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
