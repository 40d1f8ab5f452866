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
from typing import Protocol
from uuid import UUID

from chat.events import CloseCode
from chat.models import Conversation
from chat.sockets.door import Door, signed_in
from workspaces.database import in_database
from workspaces.models import Membership, User

logger = logging.getLogger(__name__)

ROUND_SECONDS = 2.0
"""How often missed events are looked for; a page is healed once two rounds in a row have seen the gap."""
RIGHTS_EVERY = 2
"""Every so many rounds also sessions and memberships; their ends are told to pages at once, but that may be lost."""
_MOST_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What one round shows of a page."""

    reason_to_close: CloseCode | None = None
    newest: dict[UUID, int] = field(default_factory=dict)
    """The number of the newest event of each conversation that is still the person's."""


class Page(Protocol):
    """What is looked after; on the loop that serves it."""

    door: Door

    @property
    def conversation_ids(self) -> Collection[UUID]:
        """The conversations that it follows."""

    async def looked_after(self, seen: Seen) -> None:
        """Close the page, or heal what it missed."""


class Rounds:
    """The pages of one loop."""

    def __init__(self) -> None:
        self._pages: set[Page] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, page: Page) -> None:
        """Look after a page from now on."""
        self._pages.add(page)
        if self._task is None:
            # In a context of its own: it works for all of them, not for the first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._go(), context=contextvars.Context())

    def discard(self, page: Page) -> None:
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
            pages = list(self._pages)
            asked = [(page.door, tuple(page.conversation_ids)) for page in pages]
            try:
                seen = await in_database(look, asked, rights=number % RIGHTS_EVERY == 0)
            except Exception:
                logger.warning("pages_not_looked_after", exc_info=True)
                continue
            told = (
                page.looked_after(one)
                for page, one in zip(pages, seen, strict=True)
                if page in self._pages
            )
            for failure in await asyncio.gather(*told, return_exceptions=True):
                if isinstance(failure, Exception):
                    logger.warning("page_not_looked_after", exc_info=failure)


_rounds: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Rounds] = weakref.WeakKeyDictionary()


def rounds() -> Rounds:
    """Those of the running loop."""
    return _rounds.setdefault(asyncio.get_running_loop(), Rounds())


def look(pages: Sequence[tuple[Door, Collection[UUID]]], *, rights: bool) -> list[Seen]:
    """How things stand for each page: one statement for the events, and two for the rights, however many pages there are."""
    closing = _reasons_to_close([door for door, _ in pages]) if rights else {}
    numbers = _newest_events(list({one for _, ids in pages for one in ids}))
    return [
        Seen(
            closing.get(door),
            {
                one: numbers[one, door.workspace.pk, door.user.pk]
                for one in ids
                if (one, door.workspace.pk, door.user.pk) in numbers
            },
        )
        for door, ids in pages
    ]


def _reasons_to_close(doors: Sequence[Door]) -> dict[Door, CloseCode]:
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
        known = signed_in(some, users)
        for door in some:
            member = members.get((door.workspace.pk, door.user.pk))
            if door not in known:
                reasons[door] = CloseCode.SIGN_IN_AGAIN
            elif member is None or not member.is_active:
                reasons[door] = CloseCode.NOT_A_MEMBER
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
