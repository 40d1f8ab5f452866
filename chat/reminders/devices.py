"""The devices that people are notified on while Trellis is closed: adding, listing and removing them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.models import PushDevice
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.web_push import (
    InvalidSubscription,
    Subscription,
    encode,
    find_vapid_key,
    read_subscription,
    vapid_keys,
)
from workspaces.errors import Conflict, DomainError, InvalidInput, PermissionDenied
from workspaces.holding import take_room
from workspaces.models import User, Workspace
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

MOST_DEVICES: Final = 10
"""Of one person in one workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDraft:
    """What a browser gave, and what its person chose."""

    endpoint: str = field(repr=False)
    p256dh: str
    auth: str = field(repr=False)
    key_id: str
    """Of our keys, the one that the browser was given."""
    shows_titles: bool = False
    name: str = ""
    session_key: str | None = field(default=None, repr=False)
    """Of the browser's session; the device goes with it. None: a program added it."""


def devices_of(workspace: Workspace, person: User) -> WorkspaceQuerySet[PushDevice]:
    """A person's devices where they are still signed in, oldest first."""
    rows: WorkspaceQuerySet[PushDevice] = (
        PushDevice.objects.for_workspace(workspace).visible_to(person).living().order_by("pk")
    )
    return rows


def add_device(
    *, workspace: Workspace, person: User, draft: DeviceDraft, actor: Actor
) -> PushDevice:
    """Notify a person on this device from now on. The same one again takes the place of the one before.

    Whoever has the browser now has it alone: what others added in it before is removed, in every workspace.

    Raises:
        PermissionDenied: it is somebody else's.
        InvalidInput: an address or key that is none, an old key of ours, or too many devices.
        Conflict: the browser's session has ended meanwhile, or another window added it at the same moment.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    _require_own(actor, person)
    subscription = _read(draft)
    if draft.session_key and not Session.objects.filter(pk=draft.session_key).exists():
        raise Conflict(_("You were signed out in the meantime. Sign in and switch it on again."))
    try:
        return _replace(workspace, person, draft, subscription)
    except IntegrityError as error:
        raise Conflict(_("This device was added in another window just now.")) from error


@transaction.atomic
def _replace(
    workspace: Workspace, person: User, draft: DeviceDraft, subscription: Subscription
) -> PushDevice:
    digest = digest_of_endpoint(str(subscription.endpoint))
    others = PushDevice.objects.across_workspaces().filter(endpoint_digest=digest)
    others.exclude(owner=person).delete()
    mine = PushDevice.objects.for_workspace(workspace).filter(owner=person)
    mine.filter(endpoint_digest=digest).delete()
    # Where the person signed out or was signed out, nothing is sent any more.
    mine.exclude(pk__in=mine.living().values("pk")).delete()
    message = _("You can be notified on %(most)s devices. Remove one first.")
    take_room(
        mine,
        most=MOST_DEVICES,
        refusal=InvalidInput(message % {"most": MOST_DEVICES}),
        workspace_id=workspace.pk,
        person_id=person.pk,
    )
    return PushDevice.objects.create(
        workspace=workspace,
        owner=person,
        session_id=draft.session_key,
        name=draft.name[:100],
        endpoint=str(subscription.endpoint),
        endpoint_digest=digest,
        p256dh=encode(subscription.p256dh),
        auth=encode(subscription.auth),
        key_id=draft.key_id,
        shows_titles=draft.shows_titles,
        told_until=database_now(),
    )


def remove_device(*, device: PushDevice, actor: Actor) -> None:
    """Notify its person there no more. What is on its way is not sent.

    Raises:
        PermissionDenied: it is somebody else's.
    """
    _require_own(actor, device.owner)
    device.delete()


def subscription_of(device: PushDevice) -> Subscription:
    """Where and how to write to a device.

    Raises:
        SecretUnreadable: the key that it is stored with is gone.
    """
    assert device.endpoint is not None
    assert device.auth is not None
    return read_subscription(
        device.endpoint.reveal("sending a notification", is_credential=False),
        device.p256dh,
        device.auth.reveal("encrypting a notification"),
    )


def digest_of_endpoint(endpoint: str) -> str:
    """What a browser can be known by without its address: whoever knows that can write there."""
    return hashlib.sha256(endpoint.encode()).hexdigest()


def _require_own(actor: Actor, person: User) -> None:
    if actor.user_id != person.pk:
        raise PermissionDenied(_("Only you can choose where you are notified."))


def _read(draft: DeviceDraft) -> Subscription:
    if len(draft.endpoint) > MAX_URL_LENGTH:
        raise InvalidInput(fields={"endpoint": [_("This address is too long.")]})
    try:
        subscription = read_subscription(draft.endpoint, draft.p256dh, draft.auth)
    except InvalidSubscription as error:
        raise InvalidInput(fields={"p256dh": [str(error)]}) from error
    except DomainError as error:
        raise InvalidInput(fields={"endpoint": [error.message]}) from error
    if find_vapid_key(draft.key_id) is None:
        fault = _("This key is no longer in use. Reload the page and switch it on again.")
        raise InvalidInput(fields={"key_id": [fault]})
    return subscription


def current_key() -> tuple[str, str]:
    """The id and the public part of the key that a browser is to take messages from."""
    key = vapid_keys()[0]
    return key.id, key.public
