"""What tests of the log share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from tests.audit.streams.receivers import HttpReceiver


@pytest.fixture
def checkpoint_file(tmp_path: Path) -> Iterator[Path]:
    """Where this test's newest checkpoint is kept outside the database."""
    path = tmp_path / "outside" / "checkpoint.json"
    config = settings.TRELLIS.model_copy(update={"audit_checkpoint_file": path})
    with override_settings(TRELLIS=config):
        yield path


@pytest.fixture(scope="module")
def listening() -> Iterator[HttpReceiver]:
    """One that listens for a whole module of tests."""
    receiver = HttpReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def receiver(listening: HttpReceiver) -> HttpReceiver:
    """A program that hears alerts and entries, and has heard nothing so far."""
    listening.heard.clear()
    listening.answers.clear()
    return listening
