"""What the doctor sees of the database."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import connection
from django.utils.translation import ngettext

from config.doctor.findings import DoctorFinding, failed, look, ok
from config.health import write_to_database
from config.installation import sqlite_looks
from config.installation.database_faults import DAMAGED
from config.installation.versions import database_version
from workspaces.database.migration_state import count_missing, find_newer
from workspaces.database.postgresql import policies
from workspaces.words.formats import whole
from workspaces.words.waiting_times import duration_in_words

OLDEST_POSTGRESQL: Final = 15
TIMEOUTS: Final = {"idle_in_transaction_session_timeout": "10s", "lock_timeout": "20s"}
DAMAGE_SECONDS: Final = 5.0
"""How long `manage.py doctor` looks for damage in SQLite's file. A backup looks through all of it."""


def check_database(part: str, *, is_patient: bool = True) -> DoctorFinding:
    """Look whether the database is new enough, migrated, sound, and takes writes.

    Args:
        is_patient: false for pages, which tell when somebody last looked for damage, and do not wait for the next look.
    """
    name, found = database_version()
    if connection.vendor == "postgresql" and int(found.split(".")[0]) < OLDEST_POSTGRESQL:
        return failed(
            part, f"{name} {found} is too old", f"Use PostgreSQL {OLDEST_POSTGRESQL} or newer."
        )
    missing = count_missing()
    if missing:
        return failed(
            part,
            f"{name} {found}, but "
            + ngettext("%s migration is missing", "%s migrations are missing", missing)
            % whole(missing),
            "Run: python3 manage.py migrate",
        )
    is_damaged, last_look = (_is_damaged(), "") if is_patient else _last_damage()
    if is_damaged:
        return failed(part, DAMAGED.text, DAMAGED.advice)
    write_to_database()  # what it raises is this line's text
    if newer := find_newer():
        return look(
            part,
            f"{name} {found}, but a newer version of Trellis has changed it ({newer[-1]})",
            "Install that version here again. This one may not know all that is in the database.",
        )
    if unset := _missing_timeouts():
        return look(
            part,
            f"{name} {found} sets no {' and no '.join(unset)}, so a process that hangs keeps its locks",
            "As the database's owner, run: "
            + " ".join(f"ALTER ROLE … SET {one} = '{TIMEOUTS[one]}';" for one in unset),
        )
    return ok(part, f"{name} {found}, all migrations are there{last_look}")


def _is_damaged() -> bool:
    """Whether SQLite finds a fault in its file, as far as it gets in a few seconds."""
    if connection.vendor != "sqlite":
        return False
    connection.ensure_connection()
    return sqlite_looks.find_damage(connection.connection, DAMAGE_SECONDS)


def _last_damage() -> tuple[bool, str]:
    """What the last look for damage found, and how old it is, in words."""
    path = sqlite_looks.database_file()
    if path is None:
        return _is_damaged(), ""
    seen = sqlite_looks.damage.last(path)
    if seen is None and (fault := sqlite_looks.damage.fault) is not None:
        raise fault
    if seen is None:
        return False, "; Trellis looks for damage in its file, so look again in a moment"
    seconds = max(0, round(seen.age.total_seconds()))
    when = f"{duration_in_words(seconds)} ago" if seconds else "just now"
    return seen.found, f"; no damage was found in its file {when}"


def _missing_timeouts() -> list[str]:
    """Those that a connection lacks: behind a pooler they are the database role's."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM pg_settings WHERE name = ANY(%s) AND setting = '0' ORDER BY name",
            [list(TIMEOUTS)],
        )
        return [str(name) for (name,) in cursor.fetchall()]


def check_row_security(part: str) -> DoctorFinding:
    """Look whether row-level security is as the settings want it."""
    if connection.vendor != "postgresql":
        return ok(part, "not used: SQLite has none")
    is_in_place = policies.is_in_place()
    if not settings.TRELLIS.row_security:
        if is_in_place:
            return ok(part, "off")
        return failed(
            part,
            "off, but the database still hides rows, so pages may stay empty",
            "As the tables' owner, run: python3 manage.py migrate",
        )
    if not is_in_place:
        return failed(
            part,
            "on, but tables lack their policies",
            "As the tables' owner, run: python3 manage.py migrate",
        )
    role = policies.find_role()
    if role.is_exempt:
        return failed(
            part,
            f"on, but PostgreSQL exempts the role {role.name} (SUPERUSER or BYPASSRLS)",
            "Have servers and workers use a role without these rights (operations.md).",
        )
    if role.owns_tables:
        return look(
            part,
            f"on; the role {role.name} owns tables, so it could remove their policies",
            "Have servers and workers use a role that owns nothing (operations.md).",
        )
    return ok(part, f"on, and it holds for the role {role.name}, which owns no tables")
