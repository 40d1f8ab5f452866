"""One world for each module of walks: built once, and every test leaves it as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

import config.urls  # noqa: F401 - finds the classes of the admin, which the tests here walk
from tests.isolation.state import state_of
from tests.isolation.world import World, make_world


@pytest.fixture(autouse=True, scope="module")
def no_lines_of_refusals() -> Iterator[None]:
    """The walks are refused thousands of times. To write each into the log is a tenth of what a refusal takes."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Both sides, in a transaction around the module's tests; each of them is rolled back to here."""
    with django_db_blocker.unblock():
        around = transaction.atomic()
        # The tests' own, like those that Django puts around them: no code under test opened it.
        around._from_testcase = True  # type: ignore[attr-defined]
        around.__enter__()
        made = make_world()
        made.a.sign_in()
        made.b.sign_in()
    yield made
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        around.__exit__(None, None, None)


@dataclass(frozen=True, slots=True)
class States:
    """All rows of both sides, as values."""

    a: dict[str, Any]
    b: dict[str, Any]


@pytest.fixture(scope="module")
def before(world: World, django_db_blocker: DjangoDbBlocker) -> States:
    """Both sides as every test of the module finds them."""
    with django_db_blocker.unblock():
        return States(a=state_of(world.a), b=state_of(world.b))
