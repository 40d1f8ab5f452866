"""The provider's double, in the form that most deployments speak."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.klavis import FakeKlavis


@pytest.fixture
def provider() -> Iterator[FakeKlavis]:
    """The provider."""
    double = FakeKlavis()
    yield double
    double.stop()
