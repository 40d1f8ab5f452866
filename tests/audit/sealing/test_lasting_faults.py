"""What goes wrong in each of the sealer's rounds fills no log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from audit.proof.signing import SigningKeyMissing
from audit.sealing import sealing_thread

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_was_wrong() -> Iterator[None]:
    sealing_thread.lasting.clear()
    yield
    sealing_thread.lasting.clear()


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (SigningKeyMissing("0" * 16), "audit_signing_key_missing"),
        (OSError(28, "No space left on device"), "audit_checkpoint_file_not_written"),
    ],
)
def test_what_lasts_is_a_line_when_it_begins_and_now_and_then(
    fault: Exception, line: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2172: for a key that is missing there were 86,000 lines a day, and for a full disk a traceback each second."""

    def fail(**_: object) -> None:
        raise fault

    def lines() -> int:
        return sum(line in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.WARNING):
        with monkeypatch.context() as patch:
            patch.setattr(sealing_thread, "make_checkpoint", fail)
            for _ in range(5):
                sealing_thread.sign_if_due()
            assert lines() == 1
            later = time.monotonic() + sealing_thread.TELL_SECONDS
            with monkeypatch.context() as clock:
                clock.setattr(time, "monotonic", lambda: later)
                sealing_thread.sign_if_due()
                sealing_thread.sign_if_due()
            assert lines() == 2
        sealing_thread.sign_if_due()  # all is well
        monkeypatch.setattr(sealing_thread, "make_checkpoint", fail)
        sealing_thread.sign_if_due()
        assert lines() == 3


def test_a_step_that_fails_in_each_round_is_one_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """REL-2172: another fault of it is another line."""
    faults = iter([ValueError("one"), ValueError("one"), KeyError("two")])

    def step() -> None:
        raise next(faults)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            sealing_thread._try(step)
    assert (
        sum("a step of the log's round failed" in one.getMessage() for one in caplog.records) == 2
    )


def test_a_database_that_is_away_still_ends_the_round() -> None:
    """REL-2172: then nothing else works either, and the pauses grow."""

    def step() -> None:
        raise OperationalError("the connection is closed")

    with pytest.raises(OperationalError):
        sealing_thread._try(step)
