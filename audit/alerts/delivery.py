"""Sending alerts' mails and webhooks from the outbox."""

from __future__ import annotations

import logging
from typing import Final

from django.utils.translation import gettext as _

from audit.models import AlertDelivery
from workspaces import outbox, webhooks
from workspaces.database import wait_for
from workspaces.errors import DomainError
from workspaces.mails import compose
from workspaces.people.memberships import suspended_addresses

logger = logging.getLogger(__name__)

KEEP_DAYS: Final = 30
_MOST_LOOKED_AT: Final = 8


def deliver_due() -> int:
    """Send what is due, those first that were tried least; returns how many were tried."""
    tried = 0
    for claimed in outbox.rounds(_claim):
        for delivery in claimed:
            if not _is_wanted(delivery):
                outbox.note(delivery, _("The rule no longer names this address."), gives_up=True)
                continue
            outbox.note(delivery, _send(delivery))
            tried += 1
    return tried


def trim_deliveries() -> int:
    """Forget what was sent or given up a month ago."""
    return outbox.trim(AlertDelivery, days=KEEP_DAYS)


def _claim() -> list[AlertDelivery]:
    due = outbox.due(AlertDelivery).select_related("rule")
    return outbox.claim(due.order_by("attempts", "next_attempt_at", "pk")[:_MOST_LOOKED_AT], most=1)


def _is_wanted(delivery: AlertDelivery) -> bool:
    """Whether the rule still names whoever is to be told: they may have left while it waited."""
    rule, target = delivery.rule, delivery.target
    if delivery.channel != AlertDelivery.Channel.EMAIL:
        return target == rule.webhook_url
    return target in rule.emails and target.lower() not in suspended_addresses(rule.workspace_id)


def _send(delivery: AlertDelivery) -> str:
    """Send it; what went wrong, in words that tell nothing of a network, or ""."""
    try:
        if delivery.channel == AlertDelivery.Channel.EMAIL:
            _send_mail(delivery)
        else:
            wait_for(_send_webhook, delivery)
    except (webhooks.NotTaken, DomainError) as error:
        return error.message
    except OSError:  # SMTP's errors are some of these
        logger.warning("alert_mail_failed", extra={"delivery": str(delivery.pk)}, exc_info=True)
        return _("The mail could not be handed over.")
    except Exception:
        logger.exception("alert_crashed", extra={"delivery": str(delivery.pk)})
        return _("It could not be sent.")
    return ""


def _send_mail(delivery: AlertDelivery) -> None:
    compose(
        subject=delivery.payload["subject"],
        text=delivery.payload["text"],
        to=[delivery.target],
        message_id=str(delivery.pk),
    ).send()


async def _send_webhook(delivery: AlertDelivery) -> None:
    secret = delivery.rule.webhook_secret
    async with webhooks.client() as client:
        await webhooks.post_message(
            client,
            delivery.target,
            message_id=delivery.pk,
            payload=delivery.payload,
            secret=secret.reveal("signing an alert") if secret else "",
        )
