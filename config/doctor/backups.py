"""What the doctor sees of backups."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import connection

from config.backups.before_upgrades import kept_copies
from config.doctor.findings import DoctorFinding, FindingState, look, ok
from workspaces import restore_detection
from workspaces.database import database_now
from workspaces.jobs.backup_notes import last_backup
from workspaces.jobs.installation import InstalledVersion

OLDEST: Final = timedelta(days=7)
"""The age of a backup from which on somebody should look."""
_ADVICE: Final = (
    "Run: python3 manage.py backup. Have that done each night, and keep its files on another machine"
    " (operations.md)."
)
_MADE: Final = "the last one was made on {:%Y-%m-%d %H:%M} UTC"
_NOT_SEEN: Final = (
    "manage.py backup has made none; those of other tools, such as pg_dump, are not seen here"
)
_KEPT: Final = "; before an upgrade, `up` kept the database, without files, in {}"
_HINT: Final = (
    "If something else makes backups, set TRELLIS_BACKUPS_ELSEWHERE=1. Otherwise run: python3 manage.py backup,"
    " and have that done each night (operations.md)."
)


def check_backups(part: str) -> DoctorFinding:
    """Look whether a backup was made lately. Only those that Trellis makes itself can be seen."""
    now, made_at = database_now(), last_backup()
    copies = kept_copies() if made_at is None else []
    kept = _KEPT.format(copies[-1]) if copies else ""
    state = f"none yet{kept}" if made_at is None else _MADE.format(made_at)
    if settings.TRELLIS.backups_elsewhere:
        return ok(part, f"made elsewhere (TRELLIS_BACKUPS_ELSEWHERE); by manage.py backup: {state}")
    if made_at is not None:
        is_old = now - made_at > OLDEST
        return look(part, f"{state}, more than a week ago", _ADVICE) if is_old else ok(part, state)
    first = InstalledVersion.objects.order_by("id").first()
    if first is None or now - first.since <= OLDEST:
        return ok(part, state)
    if connection.vendor == "postgresql":
        return DoctorFinding(part=part, state=FindingState.OK, text=_NOT_SEEN, advice=_HINT)
    return look(part, f"none was ever made{kept}", _ADVICE)


def check_restores(part: str) -> DoctorFinding:
    """Look whether a restore waits to be confirmed."""
    if restore_detection.is_unconfirmed():
        return look(
            part,
            "the database was restored from a backup",
            "Look at what is missing. Then confirm it under Admin, State of the installation, or run: python3 manage.py confirm_restore",
        )
    return ok(part, "none to confirm")
