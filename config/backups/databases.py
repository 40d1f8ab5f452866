"""The database's part of a backup: a copy made while people work, and the way back.

SQLite copies itself page by page. PostgreSQL's own `pg_dump` and `pg_restore` do it there: they have to be on the machine,
and as new as the server. Passwords reach them in the environment, where `ps` does not show them.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from django.conf import settings
from django.db import DatabaseError, connection, connections

from config.backups.archive import BackupError
from config.installation.folder_lock import is_held
from workspaces.database.row_security import EVERYTHING, SETTING, is_on

NAMES: Final = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
_SECONDS: Final = 6 * 3600
_SHOWN: Final = 600
_LEAVING_SECONDS: Final = 3.0
_BLOCK: Final = 1024**2
_SCHEMA: Final = re.compile(r"\d+; \d+ \d+ SCHEMA ")
"""An entry in a dump's list of contents."""
_MAKES_SCHEMA: Final = re.compile(r"^CREATE SCHEMA (.+);$", re.MULTILINE)


def expect_direct_connection() -> None:
    """Raise BackupError behind a pooler: what PostgreSQL's programs set for their session would stay for the next client.

    With the empty `search_path` of `pg_dump`, a server finds no tables.
    """
    if settings.TRELLIS.database_pooler == "transaction":
        raise BackupError(
            "PgBouncer may not stand between this command and PostgreSQL: servers would find no tables afterwards. "
            "Run it with TRELLIS_DATABASE_POOLER=none and PostgreSQL's own address in DATABASE_URL."
        )


def dump_database(target: Path) -> None:
    """Write a consistent copy of the database, and check that it can be read.

    Raises:
        BackupError: the copy could not be made, or is damaged.
    """
    if connection.vendor == "sqlite":
        _copy_sqlite(target)
        check_sqlite(target)
    else:
        address, secrets = _address()
        _run(
            [
                *("pg_dump", "--format=custom", "--no-owner", "--no-privileges"),
                *(("--enable-row-security",) if is_on() else ()),
                *(f"--dbname={address}", f"--file={target}"),
            ],
            secrets,
        )
        check_dump(target)


def check_sqlite(path: Path) -> None:
    """Raise BackupError unless SQLite finds the whole file in order."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
            found = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        raise BackupError(f"The copy of the database is damaged: {'; '.join(found[:3])}.")


def check_dump(path: Path) -> None:
    """Raise BackupError unless PostgreSQL's tools can read the whole dump."""
    _run(["pg_restore", "--file=/dev/null", str(path)])


def others_at_work() -> int:
    """How many others use the database now; on SQLite 1 stands for any number.

    Nobody can be found in a file that is no database any more. A server holds the data folder, too, so it is found by that.

    Raises:
        BackupError: the file cannot be opened for writing.
    """
    if connection.vendor == "postgresql":
        return _others_in_postgresql()
    path = database_file()
    if not path.exists():
        return 0
    if is_held(settings.TRELLIS.data_dir):
        return 1
    connections.close_all()
    try:
        with closing(sqlite3.connect(path, timeout=0)) as alone:
            # Leaving the write-ahead log needs the file for oneself, and every open connection holds it.
            alone.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return 1
        raise BackupError(
            f"{path} cannot be written ({error}). Look whose file it is, and whether its disk is full."
        ) from None
    except sqlite3.DatabaseError:
        return 0  # it is damaged
    return 0


def _others_in_postgresql() -> int:
    import psycopg

    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone
    address, secrets = _address()
    with psycopg.connect(address, password=secrets.get("PGPASSWORD"), autocommit=True) as alone:
        end = time.monotonic() + _LEAVING_SECONDS
        while True:
            row = alone.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchone()
            others = int(row[0]) if row else 0
            if not others or time.monotonic() > end:
                return others
            time.sleep(0.1)  # our own sessions may still be on their way out


def is_empty() -> bool:
    """Whether the database holds no tables yet."""
    if connection.vendor == "sqlite" and not database_file().exists():
        return True
    try:
        with connection.cursor() as cursor:
            return not connection.introspection.table_names(cursor)
    except DatabaseError:
        if connection.vendor == "sqlite":
            return False  # damaged, and that is what a backup is for
        raise


def load_database(source: Path, *, replaces: bool) -> Path | None:
    """Put a copy in the database's place; gives where the SQLite file that was there is now.

    Raises:
        BackupError: it could not be put there. Then the database is as it was.
    """
    if connection.vendor == "postgresql":
        connection.close()
        _load_dump(source, replaced=_schemas_of(source) if replaces else [])
        return None
    connections.close_all()
    path = database_file()
    source.chmod(0o600)
    with source.open("rb") as file:
        os.fsync(file.fileno())
    aside = _keep_aside(path) if path.exists() else None
    source.replace(path)  # both are in the data folder, so this takes no room
    return aside


def _schemas_of(source: Path) -> list[str]:
    """The schemas that a dump makes beside `public`, each as SQL spells it."""
    listed = _run(["pg_restore", "--list", str(source)])
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".list") as wanted:
        wanted.writelines(line for line in listed.splitlines(keepends=True) if _SCHEMA.match(line))
        wanted.flush()
        statements = _run(["pg_restore", f"--use-list={wanted.name}", "--file=-", str(source)])
    return _MAKES_SCHEMA.findall(statements)


def _load_dump(source: Path, *, replaced: Sequence[str]) -> None:
    """Replace what PostgreSQL holds in one transaction: if anything fails, what was there is there still.

    Args:
        replaced: schemas beside `public` that are emptied, too.
    """
    drops = "".join(f"DROP SCHEMA IF EXISTS {schema} CASCADE; " for schema in replaced)
    begin = f"BEGIN; DROP SCHEMA public CASCADE; CREATE SCHEMA public; {drops}\n"
    address, secrets = _address()
    reader = ["pg_restore", "--no-owner", "--no-privileges", "--file=-", str(source)]
    writer = [
        *("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"),
        *("--output=/dev/null", f"--dbname={address}"),
    ]
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "20", **secrets}
    with tempfile.TemporaryFile() as said_reading, tempfile.TemporaryFile() as said_writing:
        psql = _start(writer, environment, stdin=subprocess.PIPE, stderr=said_writing)
        assert psql.stdin is not None, "it was asked for"
        try:
            dump = _start(reader, environment, stdout=subprocess.PIPE, stderr=said_reading)
        except BackupError:
            psql.communicate()
            raise
        assert dump.stdout is not None, "it was asked for"
        is_taken = True
        try:
            with psql.stdin as statements, dump.stdout as content:
                statements.write(begin.encode())
                shutil.copyfileobj(content, statements, _BLOCK)
                # Without this line, psql leaves and PostgreSQL takes everything back.
                if dump.wait() == 0:
                    statements.write(b"COMMIT;\n")
        except BrokenPipeError:
            is_taken = False
        is_written = psql.wait() == 0
        is_read = dump.wait() == 0
        if is_written and is_read and is_taken:
            return
        is_from_reading = is_written and is_taken
        output = _tail(said_reading if is_from_reading else said_writing)
        program = "pg_restore" if is_from_reading else "psql"
        raise BackupError(f"The database is as it was: {program} failed: {output}")


def _start(
    command: list[str],
    environment: Mapping[str, str],
    *,
    stderr: IO[bytes],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
    except FileNotFoundError:
        raise _missing(command[0]) from None


def _tail(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read().decode(errors="replace").strip()[-_SHOWN:]


def _missing(program: str) -> BackupError:
    return BackupError(
        f"{program} is not installed here. It belongs to PostgreSQL's client programs (Debian, Ubuntu: postgresql-client)."
    )


def database_file() -> Path:
    """SQLite's file."""
    return Path(connection.settings_dict["NAME"])


def _copy_sqlite(target: Path) -> None:
    try:
        connection.ensure_connection()
        with closing(sqlite3.connect(target)) as copy:
            connection.connection.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    except (DatabaseError, sqlite3.DatabaseError) as error:
        raise BackupError(f"The database could not be copied: {error}.") from None
    target.chmod(0o600)


def drop_second_names() -> None:
    """Take what a killed restore kept aside off the database: it is that file itself, so it changes with it."""
    if connection.vendor != "sqlite" or not (path := database_file()).exists():
        return
    for aside in path.parent.glob(f"{path.name}.before-restore-*"):
        if aside.samefile(path):
            aside.unlink()


def _keep_aside(path: Path) -> Path:
    """Give the file a second name. Under its first it stays until the other one is there, whatever ends the process."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = path.with_name(f"{path.name}.before-restore-{stamp}")
    try:
        os.link(path, aside)
    except OSError:  # shares may know no hard links
        path.rename(aside)
    for end in ("-wal", "-shm"):  # of a damaged file they may hold what it lacks
        log = path.with_name(path.name + end)
        if log.exists():
            log.rename(aside.with_name(aside.name + end))
    return aside


def _address() -> tuple[str, dict[str, str]]:
    """How PostgreSQL's programs reach the database: a connection string, and the password beside it."""
    from psycopg.conninfo import make_conninfo

    known = connection.get_connection_params()
    names = ("host", "hostaddr", "port", "user", "dbname", "sslmode", "sslrootcert")
    parameters = {name: known[name] for name in names if known.get(name)}
    password = known.get("password")
    secrets = {"PGPASSWORD": str(password)} if password else {}
    if is_on():  # or a dump would be of nobody's rows
        secrets["PGOPTIONS"] = f"-c {SETTING}={EVERYTHING}"
    return make_conninfo(**parameters), secrets


def _run(command: list[str], secrets: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PGCONNECT_TIMEOUT": "20", **(secrets or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise _missing(command[0]) from None
    except subprocess.TimeoutExpired:
        raise BackupError(f"{command[0]} did not end within six hours.") from None
    if done.returncode != 0:
        raise BackupError(f"{command[0]} failed: {done.stderr.strip()[-_SHOWN:]}")
    return done.stdout
