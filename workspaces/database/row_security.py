"""Whose rows a statement may touch on PostgreSQL: the wall behind the tenant door, where `TRELLIS_ROW_SECURITY` is on.

Whatever begins work says how far it reaches: a request one workspace, a task of the platform everything. The backend
(`workspaces.database.postgresql`) tells the database with each transaction. Policies there (`postgresql.policies`) hide all
other rows, whatever a statement asks for. Without a reach there are no rows, and our own code gets an error instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from uuid import UUID

from django.conf import settings

SETTING: Final = "trellis.workspace"
"""By which the database knows; each transaction sets it for itself."""
NOTHING: Final = ""
EVERYTHING: Final = "*"
PERSON_MARK: Final = "@"
_reach: ContextVar[str] = ContextVar("reach", default=NOTHING)


class NoReach(RuntimeError):
    """A statement on tenants' rows where nobody has said whose: a fault in our code, never a user's."""


def is_on() -> bool:
    """Whether this installation has the wall."""
    return bool(settings.TRELLIS.row_security)


def current_reach() -> str:
    """What the database is told: ids with commas between them, everything, or nothing."""
    return _reach.get()


def reach_of(workspaces: Iterable[UUID], *, person: UUID | None = None) -> str:
    """The rows of these workspaces; and of a person, their own memberships in all of them."""
    own = [f"{PERSON_MARK}{person}"] if person is not None else []
    return ",".join([*map(str, workspaces), *own])


def set_reach(reach: str) -> None:
    """Reach this far from now on, in this task or thread; whoever began it sees to its end."""
    _reach.set(reach)


@contextmanager
def reaching(reach: str) -> Iterator[None]:
    """Reach this far for a while."""
    token = _reach.set(reach)
    try:
        yield
    finally:
        _reach.reset(token)


@contextmanager
def in_workspace(workspace_id: UUID) -> Iterator[None]:
    """Reach the rows of one workspace for a while, whoever asks."""
    with reaching(reach_of([workspace_id])):
        yield


@contextmanager
def everywhere() -> Iterator[None]:
    """Reach every tenant's rows for a while: for the platform's own jobs."""
    with reaching(EVERYTHING):
        yield
