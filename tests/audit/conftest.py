"""What tests of the log share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings


@pytest.fixture
def checkpoint_file(tmp_path: Path) -> Iterator[Path]:
    """Where this test's newest checkpoint is kept outside the database."""
    path = tmp_path / "outside" / "checkpoint.json"
    config = settings.TRELLIS.model_copy(update={"audit_checkpoint_file": path})
    with override_settings(TRELLIS=config):
        yield path
