"""Sending alerts' mails and webhooks from the outbox: each destination gets one at a time, and in order."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from django.core.mail import EmailMultiAlternatives
from django.db.models import Exists, F, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext as _

from audit.models import AlertDelivery
from workspaces.delivery import outbox, sending, webhooks
from workspaces.delivery.mails import compose
from workspaces.errors import DomainError
from workspaces.models import Workspace
from workspaces.people.memberships import suspended_addresses
from workspaces.scoping import WorkspaceQuerySet

logger = logging.getLogger(__name__)

KEEP_DAYS: Final = 30
_TARGET: Final = ("rule_id", "channel", "target")
"""Whom a rule tells, and how."""


def deliver_due() -> int:
    """Send what is due; returns how many were taken up."""
    return sending.send_due(_WAY)


def trim_deliveries() -> int:
    """Forget what was sent or given up a month ago."""
    return outbox.trim(AlertDelivery, days=KEEP_DAYS)


def failing(workspace: Workspace) -> list[AlertDelivery]:
    """Give the newest message to each address that rules still name, where it failed and none has arrived since."""
    rows = AlertDelivery.objects.for_workspace(workspace).exclude(rule=None)
    delivered = AlertDelivery.Status.DELIVERED
    ended: Any = rows.filter(Q(status=delivered) | ~Q(last_error=""))
    place = Window(RowNumber(), partition_by=[F(name) for name in _TARGET], order_by="-pk")
    newest = ended.annotate(place=place).filter(place=1).select_related("rule").order_by("pk")
    return [row for row in newest if row.status != delivered and _is_named(row)]


def _due() -> WorkspaceQuerySet[AlertDelivery]:
    """What is due and has nothing before it: nobody is told that an alert is over before they are told of it.

    What is of a suspended workspace waits until that is open again.
    """
    same = {name: OuterRef(name) for name in ("workspace_id", *_TARGET)}
    before = AlertDelivery.objects.across_workspaces().filter(
        **same, status=AlertDelivery.Status.WAITING, pk__lt=OuterRef("pk")
    )
    due = outbox.due(AlertDelivery).filter(workspace__is_active=True)
    return due.filter(~Exists(before)).select_related("rule")


def _is_wanted(delivery: AlertDelivery) -> bool:
    """Whether whoever is to be told still is: they may have left while it waited."""
    if not _is_named(delivery) or delivery.channel != AlertDelivery.Channel.EMAIL:
        return _is_named(delivery)
    return delivery.target.lower() not in suspended_addresses(delivery.workspace_id)


def _is_named(delivery: AlertDelivery) -> bool:
    rule, target = delivery.rule, delivery.target
    if rule is None:
        return True
    is_mail = delivery.channel == AlertDelivery.Channel.EMAIL
    return target in rule.emails if is_mail else target == rule.webhook_url


def _begin(delivery: AlertDelivery) -> sending.Send | None:
    if not _is_wanted(delivery):
        outbox.note(delivery, _("The rule no longer names this address."), gives_up=True)
        return None
    if delivery.channel == AlertDelivery.Channel.EMAIL:
        return _mailing(delivery)
    return _posting(delivery)


def _mailing(delivery: AlertDelivery) -> sending.Send:
    mail = compose(
        subject=delivery.payload["subject"],
        text=delivery.payload["text"],
        to=[delivery.target],
        message_id=str(delivery.pk),
    )

    async def send(_client: webhooks.Client) -> sending.Failure:
        return await asyncio.to_thread(_hand_over, mail, str(delivery.pk))

    return send


def _hand_over(mail: EmailMultiAlternatives, delivery: str) -> sending.Failure:
    try:
        mail.send()
    except OSError:  # SMTP's errors are some of these
        logger.warning("alert_mail_failed", extra={"delivery": delivery}, exc_info=True)
        return webhooks.DeliveryRefused(_("The mail could not be handed over."))
    return None


def _posting(delivery: AlertDelivery) -> sending.Send:
    kept = delivery.rule.webhook_secret if delivery.rule else delivery.secret

    async def send(client: webhooks.Client) -> sending.Failure:
        try:
            await webhooks.post_message(
                client,
                delivery.target,
                message_id=delivery.pk,
                payload=delivery.payload,
                secret=kept.reveal("signing an alert") if kept else "",
            )
        except webhooks.DeliveryRefused as failure:
            return failure
        except DomainError as error:
            return webhooks.DeliveryRefused(error.message)
        return None

    return send


def _note(delivery: AlertDelivery, failure: sending.Failure) -> None:
    sending.note(delivery, failure)


_WAY: Final = sending.DeliveryMethod(
    due=_due, destination=("channel", "target"), begin=_begin, note=_note
)
