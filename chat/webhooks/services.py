"""What an administrator does with webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import WebhookDelivery, WebhookEndpoint
from chat.values import WebhookEvent
from chat.webhooks.delivery import deliver_now, give_up_all
from chat.webhooks.events import tell_test
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.delivery import outbox
from workspaces.delivery.webhooks import new_secret
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.holding import hold, take_room
from workspaces.outbound import enter_endpoint
from workspaces.roles import Permission, require

MOST_ENDPOINTS = 20


@transaction.atomic
def create_webhook(
    *, workspace_id: UUID, actor: Actor, url: str, events: Sequence[str]
) -> tuple[WebhookEndpoint, str]:
    """Begin to tell a program of these events.

    Returns:
        The row, and the signing secret, which is shown this once.

    Raises:
        InvalidInput: not an address that may be called, or unknown events.
        Conflict: there are too many already.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    _check(url, events)
    message = _("A workspace has at most %(most)s webhooks.")
    take_room(
        WebhookEndpoint.objects.for_workspace(workspace_id),
        most=MOST_ENDPOINTS,
        refusal=Conflict(message % {"most": MOST_ENDPOINTS}),
        workspace_id=workspace_id,
    )
    secret = new_secret()
    endpoint = WebhookEndpoint.objects.create(
        workspace_id=workspace_id, url=url, secret=secret, events=sorted(set(events))
    )
    record_created(endpoint, actor=actor)
    return endpoint, secret


def update_webhook(
    *,
    endpoint: WebhookEndpoint,
    actor: Actor,
    url: str | None = None,
    events: Sequence[str] | None = None,
    is_active: bool | None = None,
) -> WebhookEndpoint:
    """Change it; None leaves a value as it is. What waits for one that is switched off is given up.

    Raises:
        NotFound: somebody has deleted it.
        InvalidInput: as in `create_webhook`.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=endpoint.workspace_id)
    with transaction.atomic():
        hold(endpoint)
        url = endpoint.url if url is None else url
        events = endpoint.events if events is None else sorted(set(events))
        _check(url, events)  # before the row has it: whoever shows the fault shows the row, too
        with tracked_change(endpoint, actor=actor):
            endpoint.url, endpoint.events = url, events
            endpoint.is_active = endpoint.is_active if is_active is None else is_active
            endpoint.save()
        if not endpoint.is_active:
            give_up_all(endpoint.workspace_id, endpoint.pk)
    return endpoint


def renew_secret(*, endpoint: WebhookEndpoint, actor: Actor) -> str:
    """Sign with another secret from now on; it is shown this once."""
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=endpoint.workspace_id)
    secret = new_secret()
    with transaction.atomic():
        hold(endpoint)
        with tracked_change(endpoint, actor=actor):
            endpoint.secret = secret
            endpoint.save()
    return secret


@transaction.atomic
def delete_webhook(*, endpoint: WebhookEndpoint, actor: Actor) -> None:
    """Tell this program no more, and forget what was on its way."""
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=endpoint.workspace_id)
    hold(endpoint)
    record_deleted(endpoint, actor=actor)
    endpoint.delete()


def try_webhook(*, endpoint: WebhookEndpoint, actor: Actor) -> WebhookDelivery:
    """Send an event that says nothing, once, and wait for what comes of it."""
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=endpoint.workspace_id)
    with transaction.atomic():
        # Ours before anybody sees it, else a worker may send it, too.
        [delivery] = outbox.claim([tell_test(endpoint)], most=1)
    return deliver_now(delivery)


def _check(url: str, events: Sequence[str]) -> None:
    try:
        enter_endpoint(url)
    except DomainError as error:
        raise InvalidInput(fields={"url": [error.message]}) from error
    known = {event.value for event in WebhookEvent}
    if not events or not set(events) <= known:
        raise InvalidInput(
            fields={
                "events": [_("Choose some of %(known)s.") % {"known": ", ".join(sorted(known))}]
            }
        )
