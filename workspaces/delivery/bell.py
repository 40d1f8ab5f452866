"""Lines for people's bells, from this app. A higher app registers how they are delivered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID


class Teller(Protocol):
    """Puts a line into each person's bell, in the caller's transaction."""

    def __call__(
        self,
        *,
        workspace_id: UUID,
        user_ids: Iterable[UUID],
        kind: str,
        title: str,
        text: str,
        url: str,
    ) -> None: ...


_tellers: list[Teller] = []


def tell_with(teller: Teller) -> None:
    """From now on lines go this way. Called once at start."""
    _tellers.append(teller)


def tell(
    *, workspace_id: UUID, user_ids: Iterable[UUID], kind: str, title: str, text: str, url: str
) -> None:
    """Tell people something, in the caller's transaction."""
    people = list(user_ids)
    for teller in _tellers:
        teller(
            workspace_id=workspace_id,
            user_ids=people,
            kind=kind,
            title=title,
            text=text,
            url=url,
        )
