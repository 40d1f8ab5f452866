"""What a database's refusal means to the person who runs it, and what they can do about it."""

from __future__ import annotations

from typing import Final

from django.db import DatabaseError, connection

from audit.errors import AuditUnavailable
from config.faults import Fault

DAMAGED: Final = Fault(
    text="the database file is damaged",
    advice="Stop Trellis and copy the data folder away. Then bring the newest backup back: python3 manage.py restore --replace FILE",
)
_FULL: Final = Fault(
    text="the database has no room left",
    advice="Make room on its disk, and start again. What was not stored was undone.",
)
_READ_ONLY: Final = Fault(
    text="the database takes no writes",
    advice="SQLite: look whether its disk is full, and whose files stand in the data folder. PostgreSQL: look whether this is a standby, or read-only.",
)
_LOCKED: Final = Fault(
    text="another process keeps the database locked",
    advice="Find out which one works on it, such as another start, a copy or a restore, and wait until it ends.",
)
CONNECTIONS: Final = Fault(
    text="the database takes no more connections",
    advice="Raise max_connections of PostgreSQL, lower TRELLIS_DATABASE_POOL_SIZE, or put PgBouncer before it (operations.md).",
)
REFUSED: Final = Fault(
    text="the database refuses the user, the password or the database's name",
    advice="Look whether DATABASE_URL is right.",
)
SHUT_OUT: Final = Fault(
    text="PostgreSQL does not let this user in from here, or not in this way",
    advice="Look at its pg_hba.conf, and whether DATABASE_URL asks for TLS (sslmode) as that wants it.",
)
CERTIFICATE: Final = Fault(
    text="the database's certificate cannot be trusted, or is another host's",
    advice="Look whether DATABASE_URL has the host's name as the certificate has it, and whether sslrootcert is the file of who issued it.",
)
_RIGHTS: Final = Fault(
    text="the database's role lacks a right",
    advice="Migrate as the role that owns the tables, and grant others what operations.md says.",
)
NO_TABLES: Final = Fault(
    text="the database lacks tables of this version",
    advice="Run: python3 manage.py migrate",
)
SILENT: Final = Fault(
    text="the database does not answer",
    advice="Start it, and look whether its address in DATABASE_URL is right and can be reached from here.",
)
_BY_TEXT: Final = (
    (("not a database", "malformed"), DAMAGED),
    (("disk is full",), _FULL),
    (
        ("readonly database", "query_only", "unable to open database file", "disk i/o error"),
        _READ_ONLY,
    ),
    (("database is locked",), _LOCKED),
    (("no such table", "no such column", "has no column named"), NO_TABLES),
)
_BY_STATE: Final = {
    "25006": _READ_ONLY,
    "53100": _FULL,
    "53300": CONNECTIONS,
    "42501": _RIGHTS,
    "42P01": NO_TABLES,
    "42703": NO_TABLES,
    "28000": REFUSED,
    "28P01": REFUSED,
    "3D000": REFUSED,
}
_BY_WORDS: Final = (
    (("too many", "connection slots"), CONNECTIONS),
    (("pg_hba.conf", "valid client certificate", "does not support ssl"), SHUT_OUT),
    (("authentication failed", "not permitted to log in", "not currently accepting"), REFUSED),
    (("certificate",), CERTIFICATE),
    (("does not exist", "no password supplied"), REFUSED),
    (("connection", "timeout expired", "could not translate", "resolve"), SILENT),
)
_ASK_SECONDS: Final = 3


def find_fault(error: BaseException) -> Fault | None:
    """Say what a refusal means, also where it is why an entry of the log could not be written; None for what no operator can mend."""
    if isinstance(error, AuditUnavailable):
        return find_fault(error.__cause__) if error.__cause__ else None
    if not isinstance(error, DatabaseError):
        return None
    if connection.vendor == "postgresql":
        return _of_postgresql(error)
    text = str(error).lower()
    return next((fault for parts, fault in _BY_TEXT if any(part in text for part in parts)), None)


def _of_postgresql(error: DatabaseError) -> Fault | None:
    state = getattr(error.__cause__, "sqlstate", None)
    if state is not None:
        return _BY_STATE.get(state)
    # A connection that was never made has no state, only the words of the server or of the system.
    text = (_reason_of_pool(error) or str(error)).lower()
    return next((fault for parts, fault in _BY_WORDS if any(part in text for part in parts)), None)


def _reason_of_pool(error: DatabaseError) -> str | None:
    """Why the pool got no connection, which it keeps to itself; None if that is not what happened."""
    from psycopg import Error, connect
    from psycopg_pool import PoolTimeout

    if not isinstance(error.__cause__, PoolTimeout):
        return None
    parameters = connection.get_connection_params() | {"connect_timeout": _ASK_SECONDS}
    try:
        connect(**parameters).close()
    except Error as reason:
        return str(reason)
    return None
