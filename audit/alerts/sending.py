"""Sending alerts' mails and webhooks: claimed by one process, repeated with growing pauses, given up after about a day.

A message may arrive twice (a process may die between sending and noting it), and then has the same id.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F

from audit.models import AlertDelivery
from audit.streams.http_sinks import post
from audit.streams.sinks import CONNECT_SECONDS, SinkFailed
from workspaces import outbound
from workspaces.database import database_now, wait_for
from workspaces.errors import DomainError
from workspaces.mails import compose
from workspaces.webhook_signatures import signed_headers

logger = logging.getLogger(__name__)

PAUSES: Final = (5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200)
"""Seconds after the first, second, … attempt that failed."""
CLAIM_SECONDS: Final = 60
ROUND_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 10.0
KEEP_DAYS: Final = 30


def deliver_due() -> int:
    """Send what is due, those first that were tried least; returns how many were tried."""
    until = time.monotonic() + ROUND_SECONDS
    tried = 0
    while time.monotonic() < until and (delivery := _claim()) is not None:
        _note(delivery, _send(delivery))
        tried += 1
    return tried


def trim_deliveries() -> int:
    """Forget what was sent or given up a month ago."""
    old = AlertDelivery.objects.across_workspaces().filter(
        created_at__lt=database_now() - timedelta(days=KEEP_DAYS)
    )
    return old.exclude(status=AlertDelivery.Status.WAITING).delete()[0]


def _claim() -> AlertDelivery | None:
    """Take the next due message, by one conditional update, so that no two take the same."""
    now = database_now()
    due = AlertDelivery.objects.across_workspaces().filter(
        status=AlertDelivery.Status.WAITING, next_attempt_at__lte=now
    )
    # Processes that died with them, each time: also that comes to an end.
    due.filter(attempts__gt=len(PAUSES)).update(status=AlertDelivery.Status.GIVEN_UP)
    for row in due.select_related("rule").order_by("attempts", "next_attempt_at", "pk")[:8]:
        until = now + timedelta(seconds=CLAIM_SECONDS)
        mine = AlertDelivery.objects.for_workspace(row.workspace_id).filter(
            pk=row.pk, next_attempt_at=row.next_attempt_at, status=AlertDelivery.Status.WAITING
        )
        if mine.update(next_attempt_at=until, attempts=F("attempts") + 1):
            row.attempts, row.next_attempt_at = row.attempts + 1, until
            return row
    return None


def _send(delivery: AlertDelivery) -> str:
    """Send it; what went wrong, in words that tell nothing of a network, or ""."""
    try:
        if delivery.channel == AlertDelivery.Channel.EMAIL:
            _send_mail(delivery)
        else:
            wait_for(_send_webhook, delivery)
    except SinkFailed as error:
        return error.message
    except DomainError as error:
        return error.message
    except OSError:  # SMTP's errors are some of these
        logger.warning("alert_mail_failed", extra={"delivery": str(delivery.pk)}, exc_info=True)
        return "The mail could not be handed over."
    except Exception:
        logger.exception("alert_crashed", extra={"delivery": str(delivery.pk)})
        return "It could not be sent."
    return ""


def _send_mail(delivery: AlertDelivery) -> None:
    host = urlsplit(settings.TRELLIS.public_origins[0]).hostname
    compose(
        subject=delivery.payload["subject"],
        text=delivery.payload["text"],
        to=[delivery.target],
        headers={"Message-ID": f"<{delivery.pk}@{host}>", "Auto-Submitted": "auto-generated"},
    ).send()


async def _send_webhook(delivery: AlertDelivery) -> None:
    secret = delivery.rule.webhook_secret
    body = json.dumps({"id": str(delivery.pk), **delivery.payload}, separators=(",", ":")).encode()
    headers = signed_headers(
        secret=secret.reveal("signing an alert") if secret else "",
        event_id=str(delivery.pk),
        timestamp=int(time.time()),
        body=body,
    )
    bounds = outbound.Bounds(
        connect_seconds=CONNECT_SECONDS, total_seconds=ANSWER_SECONDS, body_bytes=64 * 1024
    )
    async with outbound.client(bounds=bounds) as client:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await post(
                    client, delivery.target, body, {**headers, "content-type": "application/json"}
                )
        except TimeoutError as error:
            raise SinkFailed("There was no answer in time.") from error


def _note(delivery: AlertDelivery, fault: str) -> None:
    now = database_now()
    changes: dict[str, object] = {"last_error": fault[:200]}
    if not fault:
        changes |= {"status": AlertDelivery.Status.DELIVERED, "delivered_at": now}
    elif delivery.attempts > len(PAUSES):
        changes["status"] = AlertDelivery.Status.GIVEN_UP
    else:
        changes["next_attempt_at"] = now + timedelta(seconds=PAUSES[delivery.attempts - 1])
    rows = AlertDelivery.objects.for_workspace(delivery.workspace_id).filter(pk=delivery.pk)
    rows.filter(status=AlertDelivery.Status.WAITING).update(**changes)
