"""Databases that are migrated once and copied for every process of the tests that comes after.

The copy is named after what the migrations say, so a change makes a new one. It lies in ``TRELLIS_TEST_TEMPLATES`` (which
``manage.py test`` gives to all its stages) or in pytest's cache folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import connection

from workspaces.database import row_security

ROOT = Path(__file__).resolve().parent.parent
APPS = ("workspaces", "audit", "mcp_servers", "mcp_servers/klavis", "chat")


def template_name() -> str:
    """Give the name that stands for the tables as the migrations make them."""
    sources = [ROOT / "config" / "requirements-dev.lock"]
    for app in APPS:
        sources += sorted((ROOT / app / "migrations").glob("*.py"))
        for folder in ("sql", "migrations/sql"):
            sources += sorted((ROOT / app / folder).glob("*.sql"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources))
    kind = "rows_" if row_security.is_on() else ""
    return f"trellis_template_{kind}{digest.hexdigest()[:12]}"


@contextmanager
def alone() -> Iterator[Path]:
    """Let one process at a time make or copy a template; gives the folder of the files."""
    folder = Path(os.environ.get("TRELLIS_TEST_TEMPLATES", ROOT / ".pytest_cache" / "templates"))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def use_template(folder: Path) -> bool:
    """Have the test database made as a copy, if there is a template; tells whether it was found."""
    settings = connection.settings_dict["TEST"]
    if connection.vendor == "postgresql":
        with connection._nodb_cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template_name()])
            found = cursor.fetchone() is not None
        if found:
            settings["TEMPLATE"] = template_name()
        return found
    template = folder / f"{template_name()}.sqlite3"
    if template.exists():
        shutil.copy(template, settings["NAME"])
    return template.exists()


def keep_template(folder: Path) -> None:
    """Make a template of the test database that was just migrated."""
    if connection.vendor == "postgresql":
        name = connection.settings_dict["NAME"]
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's alone; a template has no visitors
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{template_name()}" TEMPLATE "{name}"')
        return
    for older in folder.glob("trellis_template_*.sqlite3"):
        older.unlink()
    half = folder / "half"
    half.unlink(missing_ok=True)
    connection.ensure_connection()
    with closing(sqlite3.connect(half)) as target:
        connection.connection.backup(target)
    half.rename(folder / f"{template_name()}.sqlite3")
