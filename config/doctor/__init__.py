"""``manage.py doctor``: look at everything an installation stands on, and say in one line each how it is.

A check looks, and leaves nothing changed: what it writes to see whether it can, it takes back. What raises inside a check is that check's result: the others still run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from config.doctor.backups import check_backups, check_restores
from config.doctor.broker import check_redis
from config.doctor.database import check_database, check_row_security
from config.doctor.demo import check_demo
from config.doctor.files import check_files
from config.doctor.findings import DoctorFinding, FindingState, failed, look
from config.doctor.log import check_seals, check_triggers
from config.doctor.machine import (
    check_clocks,
    check_disk,
    check_keys,
    check_settings,
    check_versions,
)
from config.doctor.outgoing import check_mail, check_notifications, check_single_sign_on
from config.doctor.work import check_jobs, check_queues
from config.installation.database_faults import (
    CERTIFICATE,
    CONNECTIONS,
    DAMAGED,
    NO_TABLES,
    REFUSED,
    SHUT_OUT,
    SILENT,
    find_fault,
)


def examine(*, is_patient: bool = True) -> list[DoctorFinding]:
    """Run every check, in the order in which a person would look for a fault.

    Args:
        is_patient: false for pages: what takes seconds is found beside them, and told with its age.
    """
    found: list[DoctorFinding] = []
    database: DoctorFinding | None = None
    for part, check in _CHECKS.items():
        # Each further question would wait for it as long as the first did, and learn the same.
        is_away = database is not None and database.text in _AWAY and part not in _WITHOUT_DATABASE
        quick = None if is_patient else _QUICK.get(part)
        one = None if is_away else _run(part, quick or check)
        if one is None or (database and one.text in {database.text, NO_TABLES.text}):
            one = look(part, "not looked at", "Mend the database first.")
        elif part == "database" and one.state is FindingState.FAILED:
            database = one
        found.append(one)
    return found


def examine_part(part: str) -> DoctorFinding:
    """Run one check."""
    return _run(part, _CHECKS[part])


def _run(part: str, check: Callable[[str], DoctorFinding]) -> DoctorFinding:
    try:
        return check(part)
    except Exception as error:  # noqa: BLE001  whatever a check meets is its finding
        if (fault := find_fault(error)) is not None:
            return failed(part, fault.text, fault.advice)
        # Texts of exceptions may quote addresses with passwords; the name says enough for a start.
        return failed(
            part,
            f"could not be looked at ({type(error).__name__})",
            "If the database is well, look at the log of the servers for the reason.",
        )


_AWAY: Final = frozenset(
    fault.text for fault in (CERTIFICATE, CONNECTIONS, DAMAGED, REFUSED, SHUT_OUT, SILENT)
)
_WITHOUT_DATABASE: Final = frozenset({"Redis", "disk", "mail"})
_CHECKS: Final[dict[str, Callable[[str], DoctorFinding]]] = {
    "versions": check_versions,
    "settings": check_settings,
    "database": check_database,
    "row-level security": check_row_security,
    "Redis": check_redis,
    "clocks": check_clocks,
    "keys": check_keys,
    "demo": check_demo,
    "disk": check_disk,
    "files": check_files,
    "triggers": check_triggers,
    "queues": check_queues,
    "background jobs": check_jobs,
    "seals": check_seals,
    "backups": check_backups,
    "restores": check_restores,
    "mail": check_mail,
    "notifications": check_notifications,
    "single sign-on": check_single_sign_on,
}
_QUICK: Final[dict[str, Callable[[str], DoctorFinding]]] = {
    "database": partial(check_database, is_patient=False),
    "files": partial(check_files, is_patient=False),
    "mail": partial(check_mail, is_patient=False),
    "single sign-on": partial(check_single_sign_on, is_patient=False),
}
"""The same in less time."""

__all__ = ["DoctorFinding", "FindingState", "examine", "examine_part"]
