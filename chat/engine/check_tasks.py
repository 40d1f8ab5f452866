"""Telling the background that a turn of a check has ended."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from chat.enqueue import enqueue

TASK: Final = "chat.tasks.advance_checks"
_EXPIRES_SECONDS: Final = 60
"""A scheduled task looks at all runs anyway."""


def go_on(workspace_id: UUID) -> None:
    """Have the workspace's runs looked at; without a broker the scheduled task does it."""
    enqueue(TASK, str(workspace_id), expires=_EXPIRES_SECONDS)
