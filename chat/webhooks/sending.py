"""Sending what waits: claimed by one process, repeated with growing pauses, given up after about a day.

An event may arrive twice (a process may die between sending and noting it), and then has the same id.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import httpx2
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.values import DeliveryStatus
from mcp_servers.client.connections import runtime
from workspaces import outbound
from workspaces.database import database_now, in_database
from workspaces.secrets import Secret
from workspaces.webhook_signatures import signed_headers

logger = logging.getLogger(__name__)

PAUSES: Final = (5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200)
"""Seconds after the first, second, … attempt that failed."""
CLAIM_SECONDS: Final = 60
"""How long a process has for the events that it took; after that another may send them."""
MOST_AT_ONCE: Final = 32
SIDE_BY_SIDE: Final = 16
"""All of them are tried well within CLAIM_SECONDS, also if no program answers."""
MOST_PER_ENDPOINT: Final = 4
"""Of one endpoint at once: one that hangs leaves room for the others."""
ANSWER_SECONDS: Final = 10.0
ROUND_SECONDS: Final = 30.0
"""How long one task goes on to take events; the next goes on from there."""
KEEP_DAYS: Final = 7
_GONE: Final = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letter:
    delivery_id: UUID
    url: str
    secret: Secret
    body: bytes


@dataclass(frozen=True, slots=True)
class _Reply:
    """An HTTP status, or why there was none, in words that tell nothing of a network."""

    status: int | None
    fault: str = ""

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def deliver_due() -> int:
    """Send the events whose time has come; returns how many were tried. Each answer is noted as it comes."""
    until = time.monotonic() + ROUND_SECONDS
    tried = 0
    while time.monotonic() < until and (claimed := _claim()):
        rows = {row.pk: row for row in claimed}
        letters = [letter for row in claimed if (letter := _letter_of(row)) is not None]

        async def note(
            delivery_id: UUID, reply: _Reply, rows: dict[UUID, WebhookDelivery] = rows
        ) -> None:
            try:
                await in_database(_note, rows[delivery_id], reply)
            except Exception:
                # It is sent again, with the same id; the others are noted all the same.
                logger.exception("webhook_not_noted", extra={"delivery": str(delivery_id)})

        runtime.run_sync(_send_all(letters, note), timeout_seconds=CLAIM_SECONDS)
        tried += len(letters)
    return tried


def deliver_now(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send one event at once, for somebody who waits for the answer."""
    letter = _letter_of(delivery)
    if letter is not None:
        delivery.attempts += 1
        replies: list[_Reply] = []

        async def keep(_: UUID, reply: _Reply) -> None:
            replies.append(reply)

        runtime.run_sync(_send_all([letter], keep), timeout_seconds=CLAIM_SECONDS)
        _note(delivery, replies[0], gives_up=True)
    return delivery


def give_up_all(workspace_id: UUID, endpoint_id: UUID) -> None:
    """Send nothing more of what waits for an endpoint, not even when it is switched on again."""
    rows = WebhookDelivery.objects.for_workspace(workspace_id).filter(endpoint_id=endpoint_id)
    rows.filter(status=DeliveryStatus.WAITING.value).update(status=DeliveryStatus.GIVEN_UP.value)


def trim_deliveries() -> int:
    """Forget what was delivered or given up a week ago, or waits for an endpoint that is switched off."""
    old = WebhookDelivery.objects.across_workspaces().filter(
        created_at__lt=database_now() - timedelta(days=KEEP_DAYS)
    )
    is_wanted = Q(status=DeliveryStatus.WAITING.value, endpoint__is_active=True)
    count, _ = old.exclude(is_wanted).delete()
    return count


def _claim() -> list[WebhookDelivery]:
    """Take due events for this process: each by one conditional update, so that no two take the same.

    The first of each endpoint come before the second of any, however long those have waited.
    """
    now = database_now()
    due = WebhookDelivery.objects.across_workspaces().filter(
        status=DeliveryStatus.WAITING.value, next_attempt_at__lte=now
    )
    # Processes that died with them, each time: also that comes to an end.
    due.filter(attempts__gt=len(PAUSES)).update(status=DeliveryStatus.GIVEN_UP.value)
    place = Window(RowNumber(), partition_by=[F("endpoint_id")], order_by=["next_attempt_at", "pk"])
    wanted = due.filter(endpoint__is_active=True).annotate(place=place)
    first = wanted.filter(place__lte=MOST_PER_ENDPOINT).select_related("endpoint")
    rows = list(first.order_by("place", "next_attempt_at", "pk")[:MOST_AT_ONCE])
    claimed: list[WebhookDelivery] = []
    for row in rows:
        mine = WebhookDelivery.objects.for_workspace(row.workspace_id).filter(
            pk=row.pk, next_attempt_at=row.next_attempt_at, status=DeliveryStatus.WAITING.value
        )
        until = now + timedelta(seconds=CLAIM_SECONDS)
        if mine.update(next_attempt_at=until, attempts=F("attempts") + 1):
            row.attempts, row.next_attempt_at = row.attempts + 1, until
            claimed.append(row)
    return claimed


def _letter_of(row: WebhookDelivery) -> _Letter | None:
    if row.endpoint.secret is None:
        return None
    body = json.dumps({"id": str(row.pk), **row.payload}, separators=(",", ":")).encode()
    return _Letter(delivery_id=row.pk, url=row.endpoint.url, secret=row.endpoint.secret, body=body)


async def _send_all(
    letters: list[_Letter], on_reply: Callable[[UUID, _Reply], Awaitable[None]]
) -> None:
    limit = asyncio.Semaphore(SIDE_BY_SIDE)
    bounds = outbound.Bounds(
        connect_seconds=5.0, total_seconds=ANSWER_SECONDS, body_bytes=64 * 1024
    )
    async with outbound.client(bounds=bounds) as client:

        async def send(letter: _Letter) -> None:
            async with limit:
                try:
                    reply = await _send(client, letter)
                except Exception:
                    # Whatever is wrong with one of them, the others are sent.
                    logger.exception("webhook_crashed", extra={"delivery": str(letter.delivery_id)})
                    reply = _Reply(None, "It could not be sent.")
            await on_reply(letter.delivery_id, reply)

        await asyncio.gather(*(send(letter) for letter in letters))


async def _send(client: httpx2.AsyncClient, letter: _Letter) -> _Reply:
    headers = signed_headers(
        secret=letter.secret.reveal("signing a webhook"),
        event_id=str(letter.delivery_id),
        timestamp=int(time.time()),
        body=letter.body,
    )
    headers["content-type"] = "application/json"
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await client.post(letter.url, content=letter.body, headers=headers)
    except (TimeoutError, httpx2.TimeoutException):
        return _Reply(None, "There was no answer in time.")
    except outbound.NetworkRefused:
        return _Reply(None, outbound.NETWORK_REFUSED)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return _Reply(None, "It could not be reached.")
    return _Reply(answer.status_code)


def _note(row: WebhookDelivery, reply: _Reply, *, gives_up: bool = False) -> None:
    now = database_now()
    error = "" if reply.is_good else reply.fault or f"It answered with status {reply.status}."
    row.last_error = error
    if reply.is_good:
        row.status, row.delivered_at = DeliveryStatus.DELIVERED.value, now
    elif gives_up or reply.status == _GONE or row.attempts > len(PAUSES):
        row.status = DeliveryStatus.GIVEN_UP.value
    else:
        row.next_attempt_at = now + timedelta(seconds=PAUSES[row.attempts - 1])
    noted = WebhookDelivery.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
    if not reply.is_good:
        # Given up meanwhile, or delivered by another process: that stands.
        noted = noted.filter(status=DeliveryStatus.WAITING.value)
    noted.update(
        status=row.status,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        delivered_at=row.delivered_at,
        last_error=row.last_error,
    )
    endpoints = WebhookEndpoint.objects.for_workspace(row.workspace_id).filter(pk=row.endpoint_id)
    changed: dict[str, object] = {"last_error": error}
    if reply.is_good:
        changed["last_delivered_at"] = now
    if reply.status == _GONE:
        # The program has said that it wants nothing more.
        changed["is_active"] = False
    endpoints.update(**changed)
    if reply.status == _GONE:
        give_up_all(row.workspace_id, row.endpoint_id)
    if error:
        logger.info("webhook_failed", extra={"endpoint": str(row.endpoint_id), "why": error})
