"""What is done after a commit."""

from __future__ import annotations

import pytest
from django.db import transaction

from workspaces.database import after_commit, once_after_commit

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_asked_for_often_is_done_once_after_each_commit() -> None:
    """REL-2272: however many tools change at once, calls are looked for once."""
    done: list[int] = []
    for before in ([], [1, 2]):
        with transaction.atomic():
            for number in (1, 2, 1, 2, 1):
                once_after_commit(done.append, number)
            assert done == before
    assert done == [1, 2, 1, 2]
    once_after_commit(done.append, 3)
    once_after_commit(done.append, 3)
    assert done[4:] == [3, 3]


def test_a_rollback_takes_nothing_along_that_is_asked_for_again() -> None:
    """REL-2272: also of a part of the transaction."""
    done: list[int] = []
    for number in (1, 2):
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            once_after_commit(done.append, 1)
            raise ZeroDivisionError
        with transaction.atomic():
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                once_after_commit(done.append, 2)
                raise ZeroDivisionError
            once_after_commit(done.append, number)
            once_after_commit(done.append, number)
    assert done == [1, 2]


def test_what_fails_after_a_commit_is_logged_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """REL-2882: a mail server that is away was a 500, and what came after it was not done."""
    done: list[int] = []

    def fail() -> None:
        raise OSError("the mail server is away")

    with transaction.atomic():
        once_after_commit(fail)
        after_commit(fail)
        after_commit(done.append, 1)
    after_commit(fail)
    assert done == [1]
    assert caplog.text.count("OSError: the mail server is away") == 3
