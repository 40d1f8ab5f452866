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
from typing import Protocol
from uuid import UUID

from chat.events import CloseCode
from chat.models import Conversation
from chat.sockets.socket_access import Door, read_sessions, signed_in, why_shut_out
from workspaces.database import in_database
from workspaces.models import Membership, User

logger = logging.getLogger(__name__)

ROUND_SECONDS = 4.0
"""How often missed events and memberships are looked at. The ends of these are told at once, but that may be lost."""
AGAIN_SECONDS = 0.5
"""After that time a gap is looked at once more; if it is still there, the page is healed."""
SESSIONS_EVERY = 3
"""Every so many rounds also sessions. A changed password shows in each round."""
_MOST_AT_ONCE = 1_000


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

    door: Door

    @property
    def conversation_ids(self) -> Collection[UUID]:
        """The conversations that it follows."""

    async def looked_after(self, seen: PageCheck) -> bool:
        """Close the page, or heal what it missed; whether it misses something that may be on its way."""


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
            rights = RightsCheck.ALL if number % SESSIONS_EVERY == 0 else RightsCheck.MEMBERSHIPS
            if behind := await self._look(list(self._pages), rights):
                await asyncio.sleep(AGAIN_SECONDS)
                await self._look([page for page in behind if page in self._pages], RightsCheck.NONE)

    async def _look(
        self, pages: Sequence[FollowingPage], rights: RightsCheck
    ) -> list[FollowingPage]:
        """One look after these pages; gives those that miss something."""
        asked = [(page.door, tuple(page.conversation_ids)) for page in pages]
        try:
            seen = await in_database(look, asked, rights)
        except Exception:
            logger.warning("pages_not_looked_after", exc_info=True)
            return []
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


def look(pages: Sequence[tuple[Door, Collection[UUID]]], rights: RightsCheck) -> list[PageCheck]:
    """How things stand for each page: one statement for events, memberships and sessions each, however many pages there are."""
    closing = _reasons_to_close([door for door, _ in pages], rights) if rights else {}
    numbers = _newest_events(list({one for _, ids in pages for one in ids}))
    return [
        PageCheck(
            closing.get(door),
            {
                one: numbers[one, door.workspace.pk, door.user.pk]
                for one in ids
                if (one, door.workspace.pk, door.user.pk) in numbers
            },
        )
        for door, ids in pages
    ]


def _reasons_to_close(doors: Sequence[Door], rights: RightsCheck) -> dict[Door, CloseCode]:
    reasons: dict[Door, CloseCode] = {}
    for start in range(0, len(doors), _MOST_AT_ONCE):
        some = doors[start : start + _MOST_AT_ONCE]
        rows = Membership.objects.across_workspaces().filter(
            user__in={door.user.pk for door in some},
            workspace__in={door.workspace.pk for door in some},
            workspace__is_active=True,
        )
        members = {
            (row.workspace_id, row.user_id): row.user
            for row in rows.select_related("user").order_by()
        }
        users = {user.pk: user for user in members.values()}
        strangers = {door.user.pk for door in some} - users.keys()
        users |= User.objects.in_bulk(strangers) if strangers else {}
        unread = [door for door in some if rights is RightsCheck.ALL or door.session_hash is None]
        if unread:
            read_sessions(unread)
        known = signed_in(some, users)
        # Who signed out everywhere else goes on in this browser, whose session knows of it since.
        read_before = [door for door in some if door not in unread and door.session_hash]
        if doubtful := [door for door in read_before if door not in known]:
            read_sessions(doubtful)
            known |= signed_in(doubtful, users)
        for door in some:
            user = users.get(door.user.pk)
            if user is not None and not user.is_active:
                reasons[door] = CloseCode.ACCOUNT_OFF
            elif door not in known:
                reasons[door] = CloseCode.SIGN_IN_AGAIN
            elif (door.workspace.pk, door.user.pk) not in members:
                reasons[door] = why_shut_out(door.user, door.workspace.slug)
    return reasons


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
