"""Which versions an installation consists of, and since when."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from django.utils.translation import gettext as _

from config.env import ROOT
from workspaces.models import InstalledVersion
from workspaces.product import VERSION
from workspaces.words.formats import moment_in_utc

MOST_KEPT: Final = 20
"""Versions that an installation remembers."""
_SHORT: Final = 8
"""Digits of a commit that people are shown."""
_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A part that the installation runs on."""

    name: str
    version: str
    """Empty: it does not answer, or is not used."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppMigrations:
    """How far the tables of one app are."""

    app: str
    last: str
    """The last migration that was applied; empty: none was."""
    applied_at: datetime | None
    to_apply: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What one look found."""

    version: str
    commit: str
    """Empty: not known."""
    programs: list[Program]
    migrations: list[AppMigrations]
    installed_at: datetime | None
    """When the database got its first table."""
    history: list[InstalledVersion]
    """Versions that brought the database to their tables, newest first."""

    @property
    def to_apply(self) -> int:
        """Migrations that wait, of all apps."""
        return sum(one.to_apply for one in self.migrations)

    @property
    def since(self) -> datetime | None:
        """When this version was installed; None: not known."""
        newest = next(iter(self.history), None)
        is_this = newest is not None and newest.version == self.version
        return newest.since if newest is not None and is_this else None

    @property
    def short_commit(self) -> str:
        """As people quote it."""
        return self.commit[:_SHORT]


def read_versions() -> Versions:
    """Look once."""
    executor = MigrationExecutor(connection)
    waiting: dict[str, int] = {}
    for migration, _backwards in executor.migration_plan(executor.loader.graph.leaf_nodes()):
        waiting[migration.app_label] = waiting.get(migration.app_label, 0) + 1
    last: dict[str, tuple[str, datetime | None]] = {}
    moments = []
    for (app, name), row in sorted(executor.loader.applied_migrations.items()):
        # One that took the place of several has no row of its own.
        applied_at: datetime | None = getattr(row, "applied", None)
        moments += [applied_at] if applied_at else []
        last[app] = (name, applied_at)
    apps = sorted(executor.loader.migrated_apps & (last.keys() | waiting.keys()))
    nothing: tuple[str, datetime | None] = ("", None)
    return Versions(
        version=VERSION,
        commit=read_commit(),
        programs=_programs(),
        migrations=[
            AppMigrations(
                app=app,
                last=last.get(app, nothing)[0],
                applied_at=last.get(app, nothing)[1],
                to_apply=waiting.get(app, 0),
            )
            for app in apps
        ],
        installed_at=min(moments, default=None),
        history=list(InstalledVersion.objects.order_by("-id")[:MOST_KEPT]),
    )


def note_version() -> None:
    """Remember which version brought the database to its tables, after it did."""
    commit = read_commit()
    newest = InstalledVersion.objects.order_by("-id").first()
    if newest is not None and (newest.version, newest.commit) == (VERSION, commit):
        return
    InstalledVersion.objects.create(version=VERSION, commit=commit, since=timezone.now())
    kept = InstalledVersion.objects.order_by("-id")[:MOST_KEPT].values_list("id", flat=True)
    InstalledVersion.objects.exclude(id__in=list(kept)).delete()


def database_version() -> tuple[str, str]:
    """Name and version of the database."""
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version" if is_postgresql else "SELECT sqlite_version()")
        found = str(cursor.fetchone()[0]).split()[0]
    return "PostgreSQL" if is_postgresql else "SQLite", found


def redis_version() -> str:
    """Version of the Redis of the settings.

    Raises:
        redis.RedisError: it does not answer.
    """
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        return str(client.info("server")["redis_version"])


def read_commit() -> str:
    """The commit that this code is of, as the settings or the checkout say; empty: neither does."""
    if settings.TRELLIS.commit:
        return str(settings.TRELLIS.commit)
    try:
        found = _commit_of(ROOT)
    except OSError:
        return ""
    return found if set(found) <= _HEX else ""


def as_text(found: Versions) -> str:
    """Write it for somebody who helps from afar. Times are in UTC."""
    lines = [f"Trellis {found.version}" + (f" ({found.commit})" if found.commit else "")]
    lines += [f"{one.name}: {one.version or one.note}" for one in found.programs]
    if found.installed_at:
        lines.append(f"Installed: {moment_in_utc(found.installed_at)} UTC")
    lines += [
        f"Version {one.version}{f' ({one.commit[:_SHORT]})' if one.commit else ''} since {moment_in_utc(one.since)} UTC"
        for one in found.history
    ]
    lines.append("Migrations:")
    lines += [
        f"  {one.app}: {one.last or '-'}" + (f", {one.to_apply} to apply" if one.to_apply else "")
        for one in found.migrations
    ]
    return "\n".join(lines)


def _programs() -> list[Program]:
    name, found = database_version()
    return [
        Program(name="Python", version=platform.python_version()),
        Program(name="Django", version=version("django")),
        Program(name=_("MCP SDK"), version=version("mcp")),
        Program(name=name, version=found),
        _redis(),
        Program(name=_("System"), version=f"{platform.system()} {platform.release()}"),
    ]


def _redis() -> Program:
    if settings.TRELLIS.redis_url is None:
        return Program(
            name="Redis", version="", note=_("not used: one process does everything itself")
        )
    import redis

    try:
        return Program(name="Redis", version=redis_version())
    except (redis.RedisError, OSError):
        return Program(name="Redis", version="", note=_("does not answer"))


def _commit_of(checkout: Path) -> str:
    """What git would say of a checkout, without git."""
    folder = checkout / ".git"
    if folder.is_file():  # a second checkout of the same repository
        folder = checkout / folder.read_text().removeprefix("gitdir:").strip()
    head = (folder / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = folder / "commondir"
    shared = folder / common.read_text().strip() if common.is_file() else folder
    for place in (folder, shared):
        if (place / name).is_file():
            return (place / name).read_text().strip()
    for line in (shared / "packed-refs").read_text().splitlines():
        commit, _space, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""
