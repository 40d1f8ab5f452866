"""Sending what programs want to be told from the outbox: many at once, and no program holds up another."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from django.db.models import Q

from chat.models import WebhookDelivery, WebhookEndpoint
from workspaces.database import database_now, wait_for
from workspaces.delivery import outbox, sending, webhooks
from workspaces.scoping import WorkspaceQuerySet
from workspaces.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

MOST_PER_ENDPOINT: Final = 4
"""Of one endpoint at once: one that hangs leaves room for the others."""
KEEP_DAYS: Final = 7
_GONE: Final = 410


def deliver_due() -> int:
    """Send the events whose time has come; returns how many were taken up. Each answer is noted as it comes."""
    return sending.send_due(_WAY)


def deliver_now(delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an event that this process has claimed at once, for somebody who waits for the answer."""
    _note(delivery, wait_for(_send_alone, delivery), gives_up=True)
    return delivery


def give_up_all(workspace_id: UUID, endpoint_id: UUID) -> None:
    """Send nothing more of what waits for an endpoint, not even when it is switched on again."""
    rows = WebhookDelivery.objects.for_workspace(workspace_id)
    outbox.give_up(rows.filter(endpoint_id=endpoint_id))


def trim_deliveries() -> int:
    """Forget what was delivered or given up a week ago, or waits for an endpoint that is switched off."""
    return outbox.trim(WebhookDelivery, days=KEEP_DAYS, waiting=Q(endpoint__is_active=True))


def _due() -> WorkspaceQuerySet[WebhookDelivery]:
    """What is due, but for a suspended workspace: it waits until that is open again."""
    rows = outbox.due(WebhookDelivery).filter(endpoint__is_active=True, workspace__is_active=True)
    return rows.select_related("endpoint")


def _begin(delivery: WebhookDelivery) -> sending.Send | None:
    if delivery.endpoint.secret is None:
        return None

    async def send(client: webhooks.Client) -> sending.Failure:
        return await _send(client, delivery)

    return send


async def _send_alone(delivery: WebhookDelivery) -> sending.Failure:
    async with webhooks.client() as client:
        return await _send(client, delivery)


async def _send(client: webhooks.Client, delivery: WebhookDelivery) -> sending.Failure:
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
    except webhooks.DeliveryRefused as failure:
        return failure
    except SecretUnreadable as error:
        return webhooks.DeliveryRefused(error.message)
    except Exception:
        logger.exception("webhook_crashed", extra={"delivery": str(delivery.pk)})
        return webhooks.DeliveryRefused("It could not be sent.")
    return None


def _note(row: WebhookDelivery, failure: sending.Failure, *, gives_up: bool = False) -> None:
    is_gone = failure is not None and failure.status == _GONE
    sending.note(row, failure, gives_up=gives_up or is_gone)
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


_WAY: Final = sending.DeliveryMethod(
    due=_due, destination=("endpoint_id",), begin=_begin, note=_note, at_once=MOST_PER_ENDPOINT
)
