"""Where files of tests lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A storage of its own for each test."""
    own = {"BACKEND": "chat.artifacts.storage.DiskStorage", "OPTIONS": {"location": tmp_path}}
    with override_settings(STORAGES={**settings.STORAGES, "artifacts": own}):
        yield tmp_path
