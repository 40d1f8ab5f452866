"""Sending what waits: claimed by one process, repeated with growing pauses, given up after about a day.

An event may arrive twice (a process may die between sending and noting it), and then has the same id.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import httpx2
from django.db.models import F

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.values import DeliveryStatus
from chat.webhooks.signing import signed_headers
from mcp_servers import outbound
from mcp_servers.connections import runtime
from workspaces.database import database_now
from workspaces.secrets import Secret

logger = logging.getLogger(__name__)

PAUSES: Final = (5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200)
"""Seconds after the first, second, … attempt that failed."""
CLAIM_SECONDS: Final = 60
"""How long a process has for the events that it took; after that another may send them."""
MOST_AT_ONCE: Final = 50
SIDE_BY_SIDE: Final = 8
ANSWER_SECONDS: Final = 10.0
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
    """Send the events whose time has come; returns how many were tried."""
    claimed = _claim()
    letters = [letter for row in claimed if (letter := _letter_of(row)) is not None]
    if letters:
        replies = runtime.run_sync(_send_all(letters), timeout_seconds=CLAIM_SECONDS)
        for row in claimed:
            if row.pk in replies:
                _note(row, replies[row.pk])
    return len(letters)


def deliver_now(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send one event at once, for somebody who waits for the answer."""
    letter = _letter_of(delivery)
    if letter is not None:
        delivery.attempts += 1
        replies = runtime.run_sync(_send_all([letter]), timeout_seconds=CLAIM_SECONDS)
        _note(delivery, replies[delivery.pk], gives_up=True)
    return delivery


def trim_deliveries() -> int:
    """Forget what was delivered or given up a week ago."""
    old = WebhookDelivery.objects.across_workspaces().filter(
        created_at__lt=database_now() - timedelta(days=KEEP_DAYS)
    )
    count, _ = old.exclude(status=DeliveryStatus.WAITING.value).delete()
    return count


def _claim() -> list[WebhookDelivery]:
    """Take due events for this process: each by one conditional update, so that no two take the same."""
    now = database_now()
    due = WebhookDelivery.objects.across_workspaces().filter(
        status=DeliveryStatus.WAITING.value, next_attempt_at__lte=now, endpoint__is_active=True
    )
    rows = list(due.select_related("endpoint").order_by("next_attempt_at", "pk")[:MOST_AT_ONCE])
    claimed = []
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


async def _send_all(letters: list[_Letter]) -> dict[UUID, _Reply]:
    limit = asyncio.Semaphore(SIDE_BY_SIDE)
    bounds = outbound.Bounds(
        connect_seconds=5.0, total_seconds=ANSWER_SECONDS, body_bytes=64 * 1024
    )
    async with outbound.client(bounds=bounds) as client:

        async def send(letter: _Letter) -> _Reply:
            async with limit:
                return await _send(client, letter)

        replies = await asyncio.gather(*(send(letter) for letter in letters))
    return {letter.delivery_id: reply for letter, reply in zip(letters, replies, strict=True)}


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
    row.save()
    endpoints = WebhookEndpoint.objects.for_workspace(row.workspace_id).filter(pk=row.endpoint_id)
    changed: dict[str, object] = {"last_error": error}
    if reply.is_good:
        changed["last_delivered_at"] = now
    if reply.status == _GONE:
        # The program has said that it wants nothing more.
        changed["is_active"] = False
    endpoints.update(**changed)
    if error:
        logger.info("webhook_failed", extra={"endpoint": str(row.endpoint_id), "why": error})
