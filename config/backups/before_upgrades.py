"""A copy of the embedded database as it was before an upgrade: tables change in one direction only."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from django.db import connection

from config.backups.databases import database_file, dump_database

MOST_KEPT: Final = 2
KEPT_SECONDS: Final = 30 * 24 * 3600.0
_MARK: Final = ".before-upgrade-"


def copy_before_upgrade() -> Path | None:
    """Copy SQLite's file beside itself; None where another database is used, which its operator backs up.

    Raises:
        BackupError: it could not be copied, as on a full disk. Nothing of it is left.
    """
    if connection.vendor != "sqlite":
        return None
    path = database_file()
    copy = path.with_name(f"{path.name}{_MARK}{datetime.now(UTC):%Y%m%dT%H%M%S}")
    draft = copy.with_name(f".{copy.name}")
    for left in path.parent.glob(f".{path.name}{_MARK}*"):  # of a start that was killed
        left.unlink(missing_ok=True)
    try:
        dump_database(draft)
        draft.rename(copy)
    finally:
        draft.unlink(missing_ok=True)
    return copy


def kept_copies() -> list[Path]:
    """The copies that are there, the newest last. None where another database is used."""
    if connection.vendor != "sqlite":
        return []
    path = database_file()
    return sorted(path.parent.glob(f"{path.name}{_MARK}*"))


def forget_old_copies() -> None:
    """Delete all but the newest copies, and those that nobody goes back to any more: they hold what was deleted since."""
    copies = kept_copies()
    oldest = time.time() - KEPT_SECONDS
    kept = [copy for copy in copies if copy.stat().st_mtime >= oldest][-MOST_KEPT:]
    for copy in copies:
        if copy not in kept:
            copy.unlink(missing_ok=True)
