"""What the doctor sees of backups."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import connection

from config.doctor.findings import Finding, look, ok
from workspaces import restore
from workspaces.backup_notes import last_backup
from workspaces.database import database_now
from workspaces.installation import InstalledVersion

OLDEST: Final = timedelta(days=7)
"""The age of a backup from which on somebody should look."""
_ADVICE: Final = (
    "Run: python3 manage.py backup. Have that done each night, and keep its files on another machine"
    " (operations.md)."
)


def check_backups(part: str) -> Finding:
    """Look whether a backup was made lately."""
    now, made_at = database_now(), last_backup()
    if made_at is not None:
        told = f"the last one was made on {made_at:%Y-%m-%d %H:%M} UTC"
        is_old = now - made_at > OLDEST
        return look(part, f"{told}, more than a week ago", _ADVICE) if is_old else ok(part, told)
    if connection.vendor == "postgresql":
        return ok(
            part,
            "manage.py backup has made none; those of PostgreSQL's own tools are not seen here",
        )
    first = InstalledVersion.objects.order_by("id").first()
    if first is None or now - first.since <= OLDEST:
        return ok(part, "none yet")
    return look(part, "none was ever made", _ADVICE)


def check_restores(part: str) -> Finding:
    """Look whether a restore waits to be confirmed."""
    if restore.is_unconfirmed():
        return look(
            part,
            "the database was restored from a backup",
            "Look at what is missing. Then confirm it under Admin, State of the installation, or run: python3 manage.py confirm_restore",
        )
    return ok(part, "none to confirm")
