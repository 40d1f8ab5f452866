"""What the doctor sees of backups."""

from __future__ import annotations

from config.doctor.findings import Finding, look, ok
from workspaces import restore


def check_restores(part: str) -> Finding:
    """Look whether a restore waits to be confirmed."""
    if restore.is_unconfirmed():
        return look(
            part,
            "the database was restored from a backup",
            "Look at what is missing. Then confirm it under Admin, State of the installation, or run: python3 manage.py confirm_restore",
        )
    return ok(part, "none to confirm")
