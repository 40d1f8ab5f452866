"""How many requests a provider gets at once and in a minute.

Requests wait in the order in which they came. A place is a row with a lease: a process that dies gives its places back
when the leases run out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Count, Q
from django.utils.translation import gettext_noop as _
from uuid_utils.compat import uuid7

from chat.models import ModelProvider, ModelRequest
from chat.providers.base import (
    ProviderLimits,
    ProviderSpec,
)
from chat.providers.errors import (
    ProviderBusy,
    ProviderSwitchedOff,
)
from chat.providers.shared import hold_shared
from workspaces.database import database_now, in_database, lock_until_commit
from workspaces.scoping import WorkspaceQuerySet

logger = logging.getLogger(__name__)

LEASE: Final = timedelta(seconds=60)
RENEWED_SECONDS: Final = 20.0
MOST_WAITING: Final = 200
"""For one provider: whoever comes then is told at once."""
_MINUTE: Final = timedelta(minutes=1)
_PLATFORM_LOCK: Final = 0x7472_6C6D
"""Number of the advisory lock under which the platform's own provider gives places."""
_SHORTEST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 2.0

TellWait = Callable[[str], Awaitable[None]]
"""Told why a request waits, once, and with "" when it no longer does."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a request stands."""

    has_started: bool
    ahead: int
    """Requests that came first and wait too."""
    reason: str
    """The limit that it waits for, in plain words."""


@dataclass(frozen=True, slots=True)
class ProviderLoad:
    """What goes on at a provider now."""

    running: int
    waiting: int
    in_last_minute: int


def has_room(spec: ProviderSpec) -> bool:
    """Whether work that nobody waits for may be sent now: nobody waits, and half of the room stays for people."""
    limits = spec.limits
    if limits is None:
        return True
    now = database_now()
    if limits.shared_id is None:
        return _has_room(_load(_requests_of(limits), now), limits.at_once, limits.a_minute)
    queues = _queues(_requests_of(limits), now, uuid7())
    here = queues.get(limits.provider_id)
    if here is not None and not _has_room(here.load, limits.at_once_here, limits.a_minute_here):
        return False
    return _has_room(_together(queues.values()), limits.at_once, limits.a_minute)


def _has_room(load: ProviderLoad, at_once: int | None, a_minute: int | None) -> bool:
    return (
        not load.waiting
        and (at_once is None or 2 * load.running < at_once)
        and (a_minute is None or 2 * load.in_last_minute < a_minute)
    )


@asynccontextmanager
async def place_at(
    limits: ProviderLimits, longest: float, tell_wait: TellWait | None
) -> AsyncIterator[None]:
    place_id = uuid7()
    try:
        place = await in_database(ask_for_place, limits, place_id)
        if not place.has_started:
            await _wait(limits, place_id, place, longest, tell_wait)
        renewing = asyncio.create_task(keep_renewing(_put_off, limits.workspace_id, place_id))
        try:
            yield
        finally:
            renewing.cancel()
    finally:
        # Also where the caller was cancelled: nobody else would get the place before its lease runs out.
        await asyncio.shield(in_database(give_back, limits, place_id))


async def _wait(
    limits: ProviderLimits,
    place_id: UUID,
    place: QueuePlace,
    longest: float,
    tell_wait: TellWait | None,
) -> None:
    if tell_wait is not None:
        message = _("Your question waits its turn. %(reason)s") % {"reason": place.reason}
        await tell_wait(message)
    try:
        async with asyncio.timeout(longest):
            while not place.has_started:
                pause = min(_SHORTEST_PAUSE * (1 + place.ahead), _LONGEST_PAUSE)
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311  only spreads questions
                place = await in_database(ask_for_place, limits, place_id)
    except TimeoutError as error:
        logger.info("provider_busy", extra={"provider": str(limits.provider_id)})
        raise _busy(place.reason) from error
    if tell_wait is not None:
        await tell_wait("")


async def keep_renewing(put_off: Callable[[UUID, UUID], None], of: UUID, row_id: UUID) -> None:
    """Put the end of a row's lease off again and again, until cancelled.

    Args:
        of: the row's workspace.
    """
    while True:
        await asyncio.sleep(RENEWED_SECONDS)
        try:
            await in_database(put_off, of, row_id)
        except DatabaseError:  # the next round may have more luck; without, the lease runs out
            logger.warning("lease_of_request_not_renewed", exc_info=True)


def _put_off(workspace_id: UUID, place_id: UUID) -> None:
    rows = ModelRequest.objects.for_workspace(workspace_id).filter(pk=place_id)
    rows.update(alive_until=database_now() + LEASE)


@transaction.atomic
def ask_for_place(limits: ProviderLimits, place_id: UUID) -> QueuePlace:
    """Come, or ask again; the request starts if it is its turn.

    Raises:
        ProviderBusy: too many wait already.
        ProviderSwitchedOff: the provider was deleted meanwhile.
    """
    _come_one_after_another(limits)
    rows = _requests_of(limits)
    now = database_now()
    if not rows.filter(pk=place_id).update(alive_until=now + LEASE):
        rows.filter(_is_forgotten(now)).delete()
        ModelRequest.objects.create(
            id=place_id,
            workspace_id=limits.workspace_id,
            provider_id=limits.provider_id,
            alive_until=now + LEASE,
        )
    if limits.shared_id is not None:
        reason, load, ahead = _among_workspaces(limits, rows, now, place_id)
    else:
        load = _load(rows, now)
        ahead = rows.filter(_waits(now), pk__lt=place_id).count()
        reason = _reason_to_wait(limits, load, ahead)
    if reason and load.waiting > MOST_WAITING:
        raise _busy(reason)
    if not reason:
        rows.filter(pk=place_id).update(started_at=now)
    return QueuePlace(has_started=not reason, ahead=ahead, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queue:
    """The requests of one workspace at a shared provider, and its part."""

    at_once: int | None
    a_minute: int | None
    load: ProviderLoad
    ahead: int

    def startable(self, waiting: int) -> int:
        """How many of so many that wait could start now, as far as its part goes."""
        rooms = [waiting]
        if self.at_once is not None:
            rooms.append(self.at_once - self.load.running)
        if self.a_minute is not None:
            rooms.append(self.a_minute - self.load.in_last_minute)
        return max(0, min(rooms))


def _among_workspaces(
    limits: ProviderLimits, rows: WorkspaceQuerySet[ModelRequest], now: datetime, place_id: UUID
) -> tuple[str, ProviderLoad, int]:
    """Why a request waits, for its workspace's part first, with the load and the requests ahead that count for that.

    Requests that wait for their own workspace's part keep nobody else waiting.
    """
    queues = _queues(rows, now, place_id)
    here = queues[limits.provider_id]
    part = replace(limits, at_once=limits.at_once_here, a_minute=limits.a_minute_here, is_part=True)
    if reason := _reason_to_wait(part, here.load, here.ahead):
        return reason, here.load, here.ahead
    load = _together(queues.values())
    ahead = sum(one.startable(one.ahead) for one in queues.values())
    return _reason_to_wait(limits, load, ahead), load, ahead


def _together(queues: Collection[_Queue]) -> ProviderLoad:
    """What goes on in all of them. Of those that wait, only requests that could start now."""
    return ProviderLoad(
        running=sum(one.load.running for one in queues),
        waiting=sum(one.startable(one.load.waiting) for one in queues),
        in_last_minute=sum(one.load.in_last_minute for one in queues),
    )


def _queues(
    rows: WorkspaceQuerySet[ModelRequest], now: datetime, place_id: UUID
) -> dict[UUID | None, _Queue]:
    ahead = Count("pk", filter=_waits(now) & Q(pk__lt=place_id))
    parts = ("provider_id", "provider__most_at_once", "provider__most_a_minute")
    found = rows.order_by().values_list(*parts).annotate(**_counts(now), ahead=ahead)
    return {
        provider_id: _Queue(
            at_once=at_once,
            a_minute=a_minute,
            load=ProviderLoad(running=running, waiting=waiting, in_last_minute=recent),
            ahead=before,
        )
        for provider_id, at_once, a_minute, running, waiting, recent, before in found
    }


def _come_one_after_another(limits: ProviderLimits) -> None:
    """Those who ask at one moment are served one after another."""
    if limits.provider_id is None:
        lock_until_commit(_PLATFORM_LOCK)
        return
    if limits.shared_id is not None:
        if hold_shared(limits.shared_id) is None:
            raise ProviderSwitchedOff
        return
    providers = ModelProvider.objects.for_workspace(limits.workspace_id)
    if providers.select_for_update(no_key=True).only("pk").find(limits.provider_id) is None:
        raise ProviderSwitchedOff


def _requests_of(limits: ProviderLimits) -> WorkspaceQuerySet[ModelRequest]:
    """All that count: of one workspace at its provider, of every workspace at the platform's and at what it shares."""
    if limits.provider_id is None:
        return ModelRequest.objects.across_workspaces().filter(provider=None)
    if limits.shared_id is not None:
        return shared_requests(limits.shared_id)
    return _requests_here(limits)


def _requests_here(limits: ProviderLimits) -> WorkspaceQuerySet[ModelRequest]:
    rows = ModelRequest.objects.for_workspace(limits.workspace_id)
    return rows.filter(provider_id=limits.provider_id)


def shared_requests(shared_id: UUID) -> WorkspaceQuerySet[ModelRequest]:
    """Of every workspace, at one provider that is shared with them."""
    # Not a join: these rows are changed by such a condition, too.
    given = ModelProvider.objects.across_workspaces().filter(shared_id=shared_id)
    return ModelRequest.objects.across_workspaces().filter(provider__in=given.values("pk"))


def give_back(limits: ProviderLimits, place_id: UUID) -> None:
    """End a request: it counts for the rest of its minute if it was sent, else no more."""
    rows = ModelRequest.objects.for_workspace(limits.workspace_id).filter(pk=place_id)
    if not rows.filter(started_at__isnull=False).update(ended_at=database_now()):
        rows.delete()


def load_of(provider: ModelProvider) -> ProviderLoad:
    """What goes on at a provider with limits; nothing is counted at others."""
    rows = ModelRequest.objects.for_workspace(provider.workspace_id).filter(provider=provider)
    return _load(rows, database_now())


def loads_of(providers: Sequence[ModelProvider]) -> dict[UUID, ProviderLoad]:
    """The same of providers of several workspaces, in one statement; none where there are none."""
    wanted = [provider.pk for provider in providers]
    if not wanted:
        return {}
    rows = ModelRequest.objects.across_workspaces().filter(provider__in=wanted).order_by()
    counted = rows.values_list("provider_id").annotate(**_counts(database_now()))
    found = {
        pk: ProviderLoad(running=running, waiting=waiting, in_last_minute=recent)
        for pk, running, waiting, recent in counted
    }
    return {
        pk: found.get(pk) or ProviderLoad(running=0, waiting=0, in_last_minute=0) for pk in wanted
    }


def platform_load() -> ProviderLoad:
    """The same of the platform's own provider, of all workspaces together."""
    rows = ModelRequest.objects.across_workspaces().filter(provider=None)
    return _load(rows, database_now())


def shared_load(shared_id: UUID) -> ProviderLoad:
    """The same of a provider that is shared, of all workspaces together."""
    return _load(shared_requests(shared_id), database_now())


def forget_requests() -> int:
    """Delete what no longer counts; gives how many. Providers that are used do so by themselves."""
    rows = ModelRequest.objects.across_workspaces()
    return int(rows.filter(_is_forgotten(database_now())).delete()[0])


def _load(rows: WorkspaceQuerySet[ModelRequest], now: datetime) -> ProviderLoad:
    return ProviderLoad(**rows.order_by().aggregate(**_counts(now)))


def _counts(now: datetime) -> dict[str, Count]:
    """What a `ProviderLoad` is made of, in its order."""
    is_running = Q(started_at__isnull=False, ended_at=None, alive_until__gt=now)
    return {
        "running": Count("pk", filter=is_running),
        "waiting": Count("pk", filter=_waits(now)),
        "in_last_minute": Count("pk", filter=Q(started_at__gt=now - _MINUTE)),
    }


def _waits(now: datetime) -> Q:
    return Q(started_at=None, alive_until__gt=now)


def _is_forgotten(now: datetime) -> Q:
    is_over = Q(ended_at__isnull=False) | Q(alive_until__lt=now)
    return is_over & (Q(started_at=None) | Q(started_at__lt=now - _MINUTE))


def _reason_to_wait(limits: ProviderLimits, load: ProviderLoad, ahead: int) -> str:
    if limits.at_once is not None and load.running + ahead >= limits.at_once:
        return _limit_in_words(limits, f"{_requests(limits.at_once)} at once")
    if limits.a_minute is not None and load.in_last_minute + ahead >= limits.a_minute:
        return _limit_in_words(limits, f"{_requests(limits.a_minute)} a minute")
    return ""


def _limit_in_words(limits: ProviderLimits, most: str) -> str:
    whose = " from this workspace" if limits.is_part else ""
    return f"“{limits.name}” takes at most {most}{whose}."


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _busy(reason: str) -> ProviderBusy:
    message = _("%(reason)s Other requests came first, and the wait was too long.") % {
        "reason": reason
    }
    return ProviderBusy(message, details={"wait": 5})
