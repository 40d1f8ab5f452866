from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.webhook_program import Program


@pytest.fixture
def program() -> Iterator[Program]:
    listening = Program()
    yield listening
    listening.stop()
