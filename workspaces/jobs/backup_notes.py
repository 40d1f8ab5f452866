"""When a backup was made last. It is noted beside the background jobs, though no worker makes it."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from django.db import Error
from django.utils import timezone

from workspaces.database.row_security import everywhere
from workspaces.jobs.installation import BackgroundJob

logger = logging.getLogger(__name__)

BACKUP: Final = "backup"
"""The name of its row; no job has it."""


def note_backup(started_at: datetime) -> None:
    """Note that a backup was made, of the state of that moment. It is good, whether that can be noted or not."""
    now = timezone.now()
    values = {
        "started_at": started_at,
        "ended_at": now,
        "seconds": (now - started_at).total_seconds(),
    }
    try:
        with everywhere():
            BackgroundJob.objects.update_or_create(pk=BACKUP, defaults=values)
    except Error:
        logger.warning("backup_not_noted", exc_info=True)


def last_backup() -> datetime | None:
    """Of which moment the last backup is. None: none was made since backups are noted."""
    rows = BackgroundJob.objects.filter(pk=BACKUP)
    return rows.values_list("started_at", flat=True).first()
