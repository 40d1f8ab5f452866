"""Looking after all open pages of a process at once: who may stay, and what they missed.

Each page used to ask for itself; together they ask as often as one.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol
from uuid import UUID

from django.db.models import F

from chat.models import Conversation
from chat.sockets.socket_access import SocketAccess, read_sessions, signed_in, why_shut_out
from chat.wire.events import CloseCode
from workspaces.database import in_database, is_unavailable
from workspaces.delivery.announcements import deafness
from workspaces.models import Membership, User
from workspaces.people.entering import has_second_step
from workspaces.process.outages import LastingOutage

logger = logging.getLogger(__name__)

ROUND_SECONDS = 4.0
"""How often missed events and memberships are looked at. The ends of these are told at once, but that may be lost."""
AGAIN_SECONDS = 0.5
"""After that time a gap is looked at once more; if it is still there, the page is healed."""
SESSIONS_EVERY = 3
"""Every so many rounds also sessions: nudges tell at once which end. A changed password shows in each round."""
_MOST_AT_ONCE = 1_000
_outage = LastingOutage(logger, begins="pages_not_looked_after", ends="pages_looked_after_again")


class RightsCheck(IntEnum):
    """What is asked about who may stay."""

    NONE = 0
    MEMBERSHIPS = 1
    ALL = 2
    """Also whether sessions still live."""


@dataclass(frozen=True, slots=True)
class PageCheck:
    """What one round shows of a page."""

    reason_to_close: CloseCode | None = None
    newest: dict[UUID, int] = field(default_factory=dict)
    """The number of the newest event of each conversation that is still the person's."""


class FollowingPage(Protocol):
    """What is looked after; on the loop that serves it."""

    access: SocketAccess

    @property
    def conversation_ids(self) -> Collection[UUID]:
        """The conversations that it follows."""

    async def looked_after(self, seen: PageCheck) -> bool:
        """Close the page, or heal what it missed; whether it misses something that may be on its way."""


def rights_of_round(number: int) -> RightsCheck:
    """What this round asks about who may stay."""
    has_sessions = number % SESSIONS_EVERY == 0 or deafness.lasts
    return RightsCheck.ALL if has_sessions else RightsCheck.MEMBERSHIPS


class Rounds:
    """The pages of one loop."""

    def __init__(self) -> None:
        self._pages: set[FollowingPage] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, page: FollowingPage) -> None:
        """Look after a page from now on."""
        self._pages.add(page)
        if self._task is None:
            # In a context of its own: it works for all of them, not for the first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._go(), context=contextvars.Context())

    def discard(self, page: FollowingPage) -> None:
        """The page is gone."""
        self._pages.discard(page)
        if not self._pages and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _go(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            number += 1
            if behind := await self._look(list(self._pages), rights_of_round(number)):
                await asyncio.sleep(AGAIN_SECONDS)
                await self._look([page for page in behind if page in self._pages], RightsCheck.NONE)

    async def _look(
        self, pages: Sequence[FollowingPage], rights: RightsCheck
    ) -> list[FollowingPage]:
        """One look after these pages; gives those that miss something."""
        asked = [(page.access, tuple(page.conversation_ids)) for page in pages]
        try:
            seen = await in_database(look, asked, rights)
        except Exception as error:
            if not is_unavailable(error):
                logger.warning("pages_not_looked_after", exc_info=True)
            else:
                _outage.note(error)
            return []
        _outage.is_over()
        there = [pair for pair in zip(pages, seen, strict=True) if pair[0] in self._pages]
        missed = await asyncio.gather(
            *(page.looked_after(one) for page, one in there), return_exceptions=True
        )
        behind = []
        for (page, _), misses in zip(there, missed, strict=True):
            if isinstance(misses, Exception):
                logger.warning("page_not_looked_after", exc_info=misses)
            elif misses is True:
                behind.append(page)
        return behind


_rounds: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = weakref.WeakKeyDictionary()


def rounds() -> Rounds:
    """Those of the running loop."""
    return _rounds.setdefault(asyncio.get_running_loop(), Rounds())


def look(
    pages: Sequence[tuple[SocketAccess, Collection[UUID]]], rights: RightsCheck
) -> list[PageCheck]:
    """How things stand for each page: one statement for events, memberships and sessions each, however many pages there are."""
    closing = _reasons_to_close([access for access, _ in pages], rights) if rights else {}
    numbers = _newest_events(list({one for _, ids in pages for one in ids}))
    return [
        PageCheck(
            closing.get(access),
            {
                one: numbers[one, access.workspace.pk, access.user.pk]
                for one in ids
                if (one, access.workspace.pk, access.user.pk) in numbers
            },
        )
        for access, ids in pages
    ]


def _reasons_to_close(
    accesses: Sequence[SocketAccess], rights: RightsCheck
) -> dict[SocketAccess, CloseCode]:
    reasons: dict[SocketAccess, CloseCode] = {}
    for start in range(0, len(accesses), _MOST_AT_ONCE):
        some = accesses[start : start + _MOST_AT_ONCE]
        rows = Membership.objects.across_workspaces().filter(
            user__in={access.user.pk for access in some},
            workspace__in={access.workspace.pk for access in some},
            workspace__is_active=True,
        )
        asks = F("workspace__requires_two_steps")
        members: dict[tuple[UUID, UUID], Any] = {
            (row.workspace_id, row.user_id): row
            for row in rows.select_related("user").annotate(asks_for_two_steps=asks).order_by()
        }
        users = {row.user_id: row.user for row in members.values()}
        strangers = {access.user.pk for access in some} - users.keys()
        users |= User.objects.in_bulk(strangers) if strangers else {}
        unread = [
            access for access in some if rights is RightsCheck.ALL or access.session_hash is None
        ]
        if unread:
            read_sessions(unread)
        known = signed_in(some, users)
        # Who signed out everywhere else goes on in this browser, whose session knows of it since.
        read_before = [access for access in some if access not in unread and access.session_hash]
        if doubtful := [access for access in read_before if access not in known]:
            read_sessions(doubtful)
            known |= signed_in(doubtful, users)
        for access in some:
            user = users.get(access.user.pk)
            if user is not None and not user.is_active:
                reasons[access] = CloseCode.ACCOUNT_OFF
            elif access not in known:
                reasons[access] = CloseCode.SIGN_IN_AGAIN
            elif not _lets_in(members.get((access.workspace.pk, access.user.pk))):
                reasons[access] = why_shut_out(user or access.user, access.workspace.slug)
    return reasons


def _lets_in(member: Any) -> bool:
    return member is not None and (not member.asks_for_two_steps or has_second_step(member.user))


def _newest_events(conversation_ids: Sequence[UUID]) -> dict[tuple[UUID, UUID, UUID], int]:
    """By conversation, workspace and owner: a page hears of a conversation only where all three are its own."""
    numbers: dict[tuple[UUID, UUID, UUID], int] = {}
    for start in range(0, len(conversation_ids), _MOST_AT_ONCE):
        some = conversation_ids[start : start + _MOST_AT_ONCE]
        rows = Conversation.objects.across_workspaces().filter(pk__in=some).order_by()
        for pk, workspace_id, owner_id, seq in rows.values_list(
            "pk", "workspace_id", "owner_id", "event_seq"
        ):
            numbers[pk, workspace_id, owner_id] = seq
    return numbers
