"""Regular work on rows of all workspaces."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.db.models import QuerySet

from workspaces.errors import Conflict, NotFound
from workspaces.jobs.sweeping import sweep
from workspaces.models import User

pytestmark = pytest.mark.django_db


def people(number: int) -> QuerySet[User]:
    User.objects.bulk_create(
        User(email=f"p{n:04}@example.org", name="stuck") for n in range(number)
    )
    return User.objects.filter(email__startswith="p", email__endswith="example.org").order_by(
        "email"
    )


def test_what_always_fails_keeps_nothing_behind_it_waiting() -> None:
    """REL-1644: more than one run does, and all older."""
    rows = people(303)
    rows.filter(email__gte="p0300").update(name="fine")
    seen: list[str] = []

    def take(row: User) -> bool:
        if row.name == "stuck":
            raise Conflict("no")
        seen.append(row.email)
        return True

    assert sweep(rows, take, label="test", most=200) == len(seen) == 3


def test_a_run_ends_and_the_next_ones_reach_every_row() -> None:
    """REL-1644: by what was done, or by its time; then each run begins elsewhere."""
    rows = people(12)
    assert sweep(rows, lambda row: 1, label="test", most=5) == 5
    assert sweep(rows, lambda row: 1, label="test", most=5, seconds=-1) == 0
    seen: set[str] = set()

    def take(row: User) -> int:
        seen.add(row.email)
        return 1

    for _ in range(200):
        sweep(rows, take, label="test", most=1)
    assert len(seen) == 12


def test_a_database_that_is_away_ends_the_run() -> None:
    """REL-1644: the next run tries again; one row that it refuses, or that is gone, is gone past."""
    rows = people(6)
    asked: list[str] = []

    def refuse(row: User) -> int:
        asked.append(row.email)
        raise OperationalError("away")

    with pytest.raises(OperationalError):
        sweep(rows, refuse, label="test", most=100)
    assert len(asked) == 3

    def refuse_some(row: User) -> int:
        if row.email < "p0002":
            raise OperationalError("locked")
        if row.email < "p0004":
            raise NotFound("gone")
        return 1

    assert sweep(rows, refuse_some, label="test", most=100) == 2
