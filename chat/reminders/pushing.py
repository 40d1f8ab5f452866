"""Notifying people on their devices: finding what is news, and sending it from the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import HASH_SESSION_KEY
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chat.models import PushDevice, PushMessage
from chat.reminders.choices import QUIET_PAUSE, choice_of, is_quiet, until_quiet
from chat.reminders.devices import subscription_of
from chat.reminders.digest import (
    LONGEST,
    NewsItem,
    NewsKind,
    Person,
    Times,
    answered_since,
    copied_since,
    ready_copies,
    unseen_answers,
    waiting_since,
    waiting_things,
)
from chat.reminders.recipients import choices_of_members, may_hear
from workspaces.actors import Actor
from workspaces.database import database_now, wait_for
from workspaces.delivery import outbox, sending, web_push, webhooks
from workspaces.errors import Conflict, PermissionDenied
from workspaces.scoping import WorkspaceQuerySet
from workspaces.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

GRACE: Final = timedelta(seconds=10)
"""As long as a page has to show something, and its person to see it."""
KEEP_DAYS: Final = 7
TTL: Final = timedelta(hours=4)
"""How long a push service keeps a notification for a device that is off; quiet hours end it earlier."""
TEST_PAUSE: Final = timedelta(seconds=10)
_GONE: Final = (404, 410)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A notification for one device, read from the rows before it is sent."""

    device: PushDevice
    payload: dict[str, object]
    topic: str
    ttl_seconds: int


# Finding


def find_pushes() -> int:
    """Put a notification into the outbox for each device whose person is to hear of something; returns how many."""
    if not PushDevice.objects.across_workspaces().exists():
        return 0
    now = database_now()
    news = _news(now)
    devices = _devices_of(news)
    return sum(
        _store(device, news[person], now)
        for person, choice in choices_of_members(news, have_address=False).items()
        if not is_quiet(choice, now)
        for device in devices[person]
    )


def _news(now: datetime) -> Times:
    found: Times = defaultdict(list)
    for times in (
        waiting_since(now - LONGEST, now - GRACE, _has_device),
        answered_since(now - LONGEST, now - GRACE, _has_device),
        copied_since(now - LONGEST, now - GRACE, _has_device),
    ):
        for person, since in times.items():
            found[person] += since
    return found


def _has_device(owner: str, since: str) -> Exists:
    """Whether a person has a device that was not told of this."""
    rows: Any = PushDevice.objects.across_workspaces()
    return Exists(
        rows.living().filter(
            workspace_id=OuterRef("workspace_id"),
            owner_id=OuterRef(owner),
            told_until__lt=OuterRef(since),
        )
    )


def _devices_of(people: Times) -> dict[Person, list[PushDevice]]:
    rows: Any = PushDevice.objects.across_workspaces()
    found: defaultdict[Person, list[PushDevice]] = defaultdict(list)
    for device in rows.living().filter(owner_id__in={person[1] for person in people}):
        found[device.workspace_id, device.owner_id].append(device)
    return found


@transaction.atomic
def _store(device: PushDevice, since: Sequence[datetime], now: datetime) -> bool:
    """Store one notification for all that is new there; no second process stores the same."""
    due = [one for one in since if one > device.told_until]
    mine = PushDevice.objects.for_workspace(device.workspace_id).filter(
        pk=device.pk, told_until=device.told_until
    )
    if not due or not mine.update(told_until=max(due)):
        return False
    PushMessage.objects.create(
        workspace_id=device.workspace_id,
        device=device,
        since=min(due),
        until=max(due),
        next_attempt_at=now,
    )
    return True


# Sending


def deliver_due() -> int:
    """Send what is due; returns how many were taken up."""
    return sending.send_due(_WAY)


def trim_pushes() -> int:
    """Forget notifications of a week ago."""
    return outbox.trim(PushMessage, days=KEEP_DAYS)


def send_test(*, device: PushDevice, actor: Actor) -> str:
    """Send a notification that tells nothing, at once; what went wrong, in words, or "".

    Raises:
        PermissionDenied: it is somebody else's device.
        Conflict: the last one was sent a moment ago.
    """
    if actor.user_id != device.owner_id:
        raise PermissionDenied(_("Only you can test your devices."))
    now = database_now()
    rows = PushDevice.objects.for_workspace(device.workspace_id).filter(pk=device.pk)
    if device.tested_at is not None and device.tested_at > now - TEST_PAUSE:
        raise Conflict(_("You have just sent one. Please wait a few seconds."))
    rows.update(tested_at=now)
    workspace = device.workspace
    payload: dict[str, object] = {
        "title": _("Notifications work on this device"),
        "body": workspace.name,
        "url": reverse("chat:reminders", args=[workspace.slug]),
        "tag": f"trellis-test-{device.pk}",
    }
    prepared = _Prepared(device, payload, device.pk.hex, int(TEST_PAUSE.total_seconds()) * 6)
    failure = wait_for(_send_alone, _ready(prepared))
    _note_device(device, failure)
    return failure.message if failure else ""


def _due() -> WorkspaceQuerySet[PushMessage]:
    return outbox.due(PushMessage).select_related("device__owner", "workspace", "device__session")


def _begin(message: PushMessage) -> sending.Send | None:
    prepared = _prepare(message, database_now())
    return _ready(prepared) if prepared is not None else None


def _note(message: PushMessage, failure: sending.Failure) -> None:
    is_gone = _note_device(message.device, failure)
    if not is_gone:  # else the message went with its device
        sending.note(message, failure)


def _prepare(message: PushMessage, now: datetime) -> _Prepared | None:
    """What to send; None where it was settled without: nothing is news any more, or it is a quiet hour."""
    device, workspace = message.device, message.workspace
    if not _is_signed_in(device, now):
        device.delete()  # and the message with it
        return None
    window = {"since": message.since, "until": message.until}
    things = [
        thing
        for read in (waiting_things, unseen_answers, ready_copies)
        for thing in read(workspace=workspace, person=device.owner, **window)
    ]
    if not things or not may_hear(workspace.pk, device.owner_id):
        outbox.note(message, "")
        return None
    choice = choice_of(workspace=workspace, person=device.owner)
    if is_quiet(choice, now):
        outbox.put_off(message, now + QUIET_PAUSE)
        return None
    ttl = min(TTL, until_quiet(choice, now) or TTL)
    # A newer notification about the same takes the place of one that the device has not got yet.
    topic = _place(device, things[0]) if len(things) == 1 else workspace.pk
    return _Prepared(device, write_push(device, things), topic.hex, int(ttl.total_seconds()))


def _is_signed_in(device: PushDevice, now: datetime) -> bool:
    """Whether the session that the device was added in still counts: a new password ends the others, before their time."""
    session = device.session
    if session is None:
        return True
    kept = session.get_decoded().get(HASH_SESSION_KEY, "")
    return session.expire_date > now and constant_time_compare(
        kept, device.owner.get_session_auth_hash()
    )


def write_push(device: PushDevice, things: Sequence[NewsItem]) -> dict[str, object]:
    """Write what the device shows: what it is and where it leads; titles of chats if the person wants them."""
    workspace = device.workspace
    if len(things) > 1:
        words = ngettext(
            "%(count)s thing is new for you", "%(count)s things are new for you", len(things)
        )
        return {
            "title": words % {"count": len(things)},
            "body": workspace.name,
            "url": reverse("chat:home", args=[workspace.slug]),
            "tag": f"trellis-{workspace.pk}",
        }
    [one] = things
    return {
        "title": str(_HEADLINES[one.kind]),
        "body": one.title[:200] if device.shows_titles else workspace.name,
        "url": one.path(workspace.slug),
        "tag": f"trellis-{_place(device, one)}",
    }


def _place(device: PushDevice, one: NewsItem) -> UUID:
    """What a notification is about: a conversation, or the workspace."""
    return one.conversation_id or device.workspace_id


_HEADLINES: Final = {
    NewsKind.ANSWER: gettext_lazy("The answer is finished"),
    NewsKind.FAILURE: gettext_lazy("The answer could not be finished"),
    NewsKind.APPROVAL: gettext_lazy("A call waits for your approval"),
    NewsKind.UNKNOWN: gettext_lazy("Say what became of a call"),
    NewsKind.QUESTION: gettext_lazy("A question waits for your answer"),
    NewsKind.REQUEST: gettext_lazy("A request of a member waits for you"),
    NewsKind.COPY: gettext_lazy("Your copy of your data is ready"),
}


def _ready(prepared: _Prepared) -> sending.Send:
    """What sends it, which reads neither rows nor secrets."""
    key = web_push.find_vapid_key(prepared.device.key_id)
    if key is None:
        words = "The key that this device knows is not in use any more. Remove the device and add it again."
        return _refusing(webhooks.DeliveryRefused(words))
    try:
        subscription = subscription_of(prepared.device)
    except SecretUnreadable as error:
        return _refusing(webhooks.DeliveryRefused(error.message))

    async def send(client: webhooks.Client) -> sending.Failure:
        return await _send(client, prepared, subscription, key)

    return send


def _refusing(failure: webhooks.DeliveryRefused) -> sending.Send:
    async def refuse(_client: webhooks.Client) -> sending.Failure:
        return failure

    return refuse


async def _send_alone(send: sending.Send) -> sending.Failure:
    async with webhooks.client() as client:
        return await send(client)


async def _send(
    client: webhooks.Client,
    prepared: _Prepared,
    subscription: web_push.Subscription,
    key: web_push.VapidKey,
) -> sending.Failure:
    try:
        async with asyncio.timeout(webhooks.ANSWER_SECONDS):
            await web_push.post_push(
                client,
                subscription,
                prepared.payload,
                key=key,
                topic=prepared.topic,
                ttl_seconds=prepared.ttl_seconds,
            )
    except webhooks.DeliveryRefused as failure:
        return failure
    except TimeoutError:
        return webhooks.DeliveryRefused("There was no answer in time.")
    except Exception:
        logger.exception("push_crashed", extra={"device": str(prepared.device.pk)})
        return webhooks.DeliveryRefused("It could not be sent.")
    return None


def _note_device(device: PushDevice, failure: sending.Failure) -> bool:
    """Note how it went; whether the push service says that the device is gone, which removes it."""
    rows = PushDevice.objects.for_workspace(device.workspace_id).filter(pk=device.pk)
    if failure is None:
        rows.update(last_told_at=database_now(), last_error="")
        return False
    logger.info("push_failed", extra={"device": str(device.pk), "why": failure.message})
    if failure.status in _GONE:
        rows.delete()
        return True
    rows.update(last_error=failure.message[:200])
    return False


_WAY: Final = sending.DeliveryMethod(due=_due, destination=("device_id",), begin=_begin, note=_note)
