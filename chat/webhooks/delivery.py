"""Sending what programs want to be told from the outbox: many at once, and no program holds up another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

import httpx2
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from chat.models import WebhookDelivery, WebhookEndpoint
from mcp_servers.client.connections import runtime
from workspaces import outbox, webhooks
from workspaces.database import database_now, in_database

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 32
SIDE_BY_SIDE: Final = 16
"""All of them are tried well within the claim, also if no program answers."""
MOST_PER_ENDPOINT: Final = 4
"""Of one endpoint at once: one that hangs leaves room for the others."""
KEEP_DAYS: Final = 7
_GONE: Final = 410

_Noting = Callable[[WebhookDelivery, webhooks.NotTaken | None], Awaitable[None]]


def deliver_due() -> int:
    """Send the events whose time has come; returns how many were tried. Each answer is noted as it comes."""
    tried = 0
    for claimed in outbox.rounds(_claim):
        _send_now(claimed, _note_soon)
        tried += len(claimed)
    return tried


def deliver_now(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an event that this process has claimed at once, for somebody who waits for the answer."""
    failures: list[webhooks.NotTaken | None] = []

    async def keep(_: WebhookDelivery, failure: webhooks.NotTaken | None) -> None:
        failures.append(failure)

    _send_now([delivery], keep)
    _note(delivery, failures[0], gives_up=True)
    return delivery


def give_up_all(workspace_id: UUID, endpoint_id: UUID) -> None:
    """Send nothing more of what waits for an endpoint, not even when it is switched on again."""
    rows = WebhookDelivery.objects.for_workspace(workspace_id)
    outbox.give_up(rows.filter(endpoint_id=endpoint_id))


def trim_deliveries() -> int:
    """Forget what was delivered or given up a week ago, or waits for an endpoint that is switched off."""
    return outbox.trim(WebhookDelivery, days=KEEP_DAYS, waiting=Q(endpoint__is_active=True))


def _claim() -> list[WebhookDelivery]:
    """Take due events. The first of each endpoint come before the second of any, however long those have waited."""
    place = Window(RowNumber(), partition_by=[F("endpoint_id")], order_by=["next_attempt_at", "pk"])
    wanted = outbox.due(WebhookDelivery).filter(endpoint__is_active=True).annotate(place=place)
    first = wanted.filter(place__lte=MOST_PER_ENDPOINT).select_related("endpoint")
    rows = list(first.order_by("place", "next_attempt_at", "pk")[:MOST_AT_ONCE])
    return outbox.claim(rows, most=MOST_AT_ONCE)


def _send_now(deliveries: Sequence[WebhookDelivery], note: _Noting) -> None:
    runtime.run_sync(_send_all(deliveries, note), timeout_seconds=outbox.CLAIM_SECONDS)


async def _send_all(deliveries: Sequence[WebhookDelivery], note: _Noting) -> None:
    limit = asyncio.Semaphore(SIDE_BY_SIDE)
    async with webhooks.client() as client:

        async def send(delivery: WebhookDelivery) -> None:
            async with limit:
                failure = await _send(client, delivery)
            await note(delivery, failure)

        await asyncio.gather(*(send(one) for one in deliveries if one.endpoint.secret is not None))


async def _send(client: httpx2.AsyncClient, delivery: WebhookDelivery) -> webhooks.NotTaken | None:
    """Send one event; what went wrong, if anything did. The others are sent in any case."""
    secret = delivery.endpoint.secret
    assert secret is not None
    try:
        await webhooks.post_message(
            client,
            delivery.endpoint.url,
            message_id=delivery.pk,
            payload=delivery.payload,
            secret=secret.reveal("signing a webhook"),
        )
    except webhooks.NotTaken as failure:
        return failure
    except Exception:
        logger.exception("webhook_crashed", extra={"delivery": str(delivery.pk)})
        return webhooks.NotTaken("It could not be sent.")
    return None


async def _note_soon(delivery: WebhookDelivery, failure: webhooks.NotTaken | None) -> None:
    try:
        await in_database(_note, delivery, failure)
    except Exception:
        # It is sent again, with the same id; the others are noted all the same.
        logger.exception("webhook_not_noted", extra={"delivery": str(delivery.pk)})


def _note(
    row: WebhookDelivery, failure: webhooks.NotTaken | None, *, gives_up: bool = False
) -> None:
    is_gone = failure is not None and failure.status == _GONE
    outbox.note(row, failure.message if failure else "", gives_up=gives_up or is_gone)
    changed: dict[str, object] = {"last_error": row.last_error}
    if failure is None:
        changed["last_delivered_at"] = database_now()
    if is_gone:
        # The program has said that it wants nothing more.
        changed["is_active"] = False
    endpoints = WebhookEndpoint.objects.for_workspace(row.workspace_id)
    endpoints.filter(pk=row.endpoint_id).update(**changed)
    if is_gone:
        give_up_all(row.workspace_id, row.endpoint_id)
    if failure is not None:
        extra = {"endpoint": str(row.endpoint_id), "why": row.last_error}
        logger.info("webhook_failed", extra=extra)
