"""``manage.py doctor``: look at everything an installation stands on, and say in one line each how it is.

A check looks, and leaves nothing changed: what it writes to see whether it can, it takes back. What raises inside a check is that check's result: the others still run.
"""

from __future__ import annotations

import platform
import shutil
import sqlite3
import ssl
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Final

from django.conf import settings
from django.core import checks
from django.db import connection
from django.utils import timezone
from django.utils.translation import ngettext

from audit import trigger_check
from audit.health import health
from audit.models import AuditStream
from audit.spool import spool_size
from chat.models import PushDevice
from config.health import write_to_data_folder, write_to_database
from config.installation.database_faults import (
    CONNECTIONS,
    DAMAGED,
    REFUSED,
    SILENT,
    find_fault,
)
from config.installation.versions import database_version, redis_version
from config.keys import FILE_NAME
from workspaces import restore
from workspaces.database import database_now
from workspaces.database.applied import count_missing, find_newer
from workspaces.database.postgresql import policies
from workspaces.formats import whole
from workspaces.product import VERSION
from workspaces.secrets import count_by_key, find_unreadable, primary_key_id
from workspaces.web_push import vapid_keys

OLDEST_POSTGRESQL: Final = 15
OLDEST_REDIS: Final = (6, 2)
TIMEOUTS: Final = {"idle_in_transaction_session_timeout": "10s", "lock_timeout": "20s"}
CLOCK_SECONDS: Final = 2.0
"""By how much two clocks may differ before people notice: times in the log and on pages are the database's."""
DAMAGE_SECONDS: Final = 5.0
"""How long the doctor looks for damage in SQLite's file. A backup looks through all of it."""
_STEPS: Final = 100_000
ROOM_BYTES: Final = 1024**3
LEAST_ROOM_BYTES: Final = 100 * 1024**2
REDIS_ROOM: Final = 0.9
"""The part of Redis' memory that may be in use."""
QUEUE_LENGTH: Final = 1_000
QUEUE_SECONDS: Final = 600
SEALING_SECONDS: Final = 300
VERIFIED: Final = timedelta(days=3)
"""The nightly verification may miss a night or two before somebody has to look."""


class State(StrEnum):
    """How a part is."""

    OK = "ok"
    LOOK = "look"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's report."""

    part: str
    state: State
    text: str
    advice: str = ""
    """What to do; empty if nothing has to be done."""


def _ok(part: str, text: str) -> Finding:
    return Finding(part=part, state=State.OK, text=text)


def _look(part: str, text: str, advice: str) -> Finding:
    return Finding(part=part, state=State.LOOK, text=text, advice=advice)


def _failed(part: str, text: str, advice: str) -> Finding:
    return Finding(part=part, state=State.FAILED, text=text, advice=advice)


def examine() -> list[Finding]:
    """Run every check, in the order in which a person would look for a fault."""
    found = []
    is_away = False
    for part, check in _CHECKS.items():
        if is_away and part not in _WITHOUT_DATABASE:
            found.append(_look(part, "not looked at", "Mend the database first."))
            continue
        found.append(_run(part, check))
        # Each further question would wait for it as long as the first did, and learn the same.
        is_away = is_away or (part == "database" and found[-1].text in _AWAY)
    return found


def examine_part(part: str) -> Finding:
    """Run one check."""
    return _run(part, _CHECKS[part])


def _run(part: str, check: Callable[[str], Finding]) -> Finding:
    try:
        return check(part)
    except Exception as error:  # noqa: BLE001  whatever a check meets is its finding
        if (fault := find_fault(error)) is not None:
            return _failed(part, fault.text, fault.advice)
        # Texts of exceptions may quote addresses with passwords; the name says enough for a start.
        return _failed(
            part,
            f"could not be looked at ({type(error).__name__})",
            "If the database is well, look at the log of the servers for the reason.",
        )


def _versions(part: str) -> Finding:
    return _ok(
        part,
        f"Trellis {VERSION}, Python {platform.python_version()}, Django {version('django')}, mcp {version('mcp')}, {ssl.OPENSSL_VERSION}",
    )


def _settings(part: str) -> Finding:
    found = [one for one in checks.run_checks() if one.level >= checks.WARNING]
    if found:
        return _look(part, "; ".join(one.msg for one in found), found[0].hint or "See the text.")
    config = settings.TRELLIS
    # A file that comes later is read then, so this stops no start.
    named = {
        "MCP_SERVERS_FILE": config.mcp_servers_file,
        "TRELLIS_CATALOGUE_FILE": config.catalogue_file,
    }
    for name, path in named.items():
        if path is not None and not path.is_file():
            return _look(
                part,
                f"{name} names {path}, and there is no such file",
                "Put the file there, for the user who runs Trellis to read, or correct the setting.",
            )
    mode = "embedded (SQLite in the data folder)" if config.database_url is None else "production"
    if config.database_url is not None and any(
        origin.startswith("http://") for origin in config.public_origins
    ):
        return _look(
            part,
            f"{mode}, with an origin that browsers reach without TLS",
            "Put a proxy with TLS before Trellis and name the https origin in TRELLIS_PUBLIC_ORIGINS.",
        )
    return _ok(part, mode)


def _database(part: str) -> Finding:
    name, found = database_version()
    if connection.vendor == "postgresql" and int(found.split(".")[0]) < OLDEST_POSTGRESQL:
        return _failed(
            part, f"{name} {found} is too old", f"Use PostgreSQL {OLDEST_POSTGRESQL} or newer."
        )
    missing = count_missing()
    if missing:
        return _failed(
            part,
            f"{name} {found}, but "
            + ngettext("%s migration is missing", "%s migrations are missing", missing)
            % whole(missing),
            "Run: python3 manage.py migrate",
        )
    if _is_damaged():
        return _failed(part, DAMAGED.text, DAMAGED.advice)
    write_to_database()  # what it raises is this line's text
    if newer := find_newer():
        return _look(
            part,
            f"{name} {found}, but a newer version of Trellis has changed it ({newer[-1]})",
            "Install that version here again. This one may not know all that is in the database.",
        )
    if unset := _missing_timeouts():
        return _look(
            part,
            f"{name} {found} sets no {' and no '.join(unset)}, so a process that hangs keeps its locks",
            "As the database's owner, run: "
            + " ".join(f"ALTER ROLE … SET {one} = '{TIMEOUTS[one]}';" for one in unset),
        )
    return _ok(part, f"{name} {found}, all migrations are there")


def _is_damaged() -> bool:
    """Whether SQLite finds a fault in its file, as far as it gets in a few seconds."""
    if connection.vendor != "sqlite":
        return False
    connection.ensure_connection()
    end = time.monotonic() + DAMAGE_SECONDS
    raw = connection.connection
    raw.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        return [row[0] for row in raw.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.OperationalError:
        return False  # the time was over
    finally:
        raw.set_progress_handler(None, 0)


def _row_security(part: str) -> Finding:
    if connection.vendor != "postgresql":
        return _ok(part, "not used: SQLite has none")
    is_in_place = policies.is_in_place()
    if not settings.TRELLIS.row_security:
        if is_in_place:
            return _ok(part, "off")
        return _failed(
            part,
            "off, but the database still hides rows, so pages may stay empty",
            "As the tables' owner, run: python3 manage.py migrate",
        )
    if not is_in_place:
        return _failed(
            part,
            "on, but tables lack their policies",
            "As the tables' owner, run: python3 manage.py migrate",
        )
    role = policies.find_role()
    if role.is_exempt:
        return _failed(
            part,
            f"on, but PostgreSQL exempts the role {role.name} (SUPERUSER or BYPASSRLS)",
            "Have servers and workers use a role without these rights (operations.md).",
        )
    if role.owns_tables:
        return _look(
            part,
            f"on; the role {role.name} owns tables, so it could remove their policies",
            "Have servers and workers use a role that owns nothing (operations.md).",
        )
    return _ok(part, f"on, and it holds for the role {role.name}, which owns no tables")


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


def _redis(part: str) -> Finding:
    if settings.TRELLIS.redis_url is None:
        return _ok(part, "not used: one process does everything")
    import redis

    try:
        found = redis_version()
    except redis.RedisError as error:
        return _failed(
            part,
            f"does not answer ({type(error).__name__})",
            "Start it, and look whether REDIS_URL is right. Until then pages are slower to follow and background tasks wait.",
        )
    if tuple(int(number) for number in found.split(".")[:2]) < OLDEST_REDIS:
        return _failed(part, f"Redis {found} is too old", "Use Redis 6.2 or newer.")
    try:
        _write_to_redis()
    except redis.RedisError as error:
        return _failed(
            part,
            f"Redis {found} takes no writes ({type(error).__name__})",
            "Look whether its memory (maxmemory) or its disk is full, and whether it is a replica. Until then background tasks wait.",
        )
    return _judge_memory(part, found)


def _write_to_redis() -> None:
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        client.set("trellis-doctor", "1", ex=10)


def _judge_memory(part: str, version: str) -> Finding:
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        memory = client.info("memory")
    # Hosted ones may keep these to themselves.
    most, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
    policy = str(memory.get("maxmemory_policy", ""))
    if most and policy.startswith("allkeys-"):
        return _look(
            part,
            f"Redis {version} throws away background tasks when its memory is full (maxmemory-policy {policy})",
            "Set maxmemory-policy to noeviction or volatile-lru. The queue of tasks then stays.",
        )
    if most and used > most * REDIS_ROOM:
        return _look(
            part,
            f"Redis {version} uses {used / most:.0%} of the memory that it may",
            "Raise maxmemory, or look why tasks pile up. Without room background tasks wait.",
        )
    return _ok(part, f"Redis {version}")


def _clocks(part: str) -> Finding:
    before = time.monotonic()
    there = database_now()
    took = time.monotonic() - before
    apart = abs((datetime.now(UTC) - there).total_seconds())
    if apart > CLOCK_SECONDS + took:
        return _look(
            part,
            f"this machine and the database are {apart:.0f} seconds apart",
            "Synchronise both with a time server (NTP). Trellis itself goes by the database's clock.",
        )
    return _ok(part, "this machine and the database agree")


def _keys(part: str) -> Finding:
    if unreadable := find_unreadable():
        return _failed(
            part,
            f"stored secrets do not open: {', '.join(unreadable)}",
            "Put back the keys that they were stored with (TRELLIS_ENCRYPTION_KEYS, or keys.json of the data folder). "
            "If those are lost, enter the secrets again.",
        )
    path = settings.TRELLIS.data_dir / FILE_NAME
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        return _look(part, f"others on this machine can read {path.name}", f"Run: chmod 600 {path}")
    usage = count_by_key()
    left = sum(usage.values()) - usage[primary_key_id()]
    if left:
        return _look(
            part,
            f"{whole(left)} of {whole(usage.total())} stored secrets are still under an old key",
            "Run: python3 manage.py rotate_keys. It goes on where it stopped. Do not remove the old key before.",
        )
    unused = [key.id for key in settings.TRELLIS.encryption_keys[1:]]
    if unused:
        return _ok(
            part,
            f"every stored secret is under {primary_key_id()}; no secret needs {', '.join(unused)}: an old key can be "
            "removed, a new one waits to be put first",
        )
    return _ok(part, "every stored secret can be read")


def _disk(part: str) -> Finding:
    folder = settings.TRELLIS.data_dir
    try:
        write_to_data_folder()
    except OSError as error:
        return _failed(
            part,
            f"the data folder {folder} takes no writes ({(error.strerror or type(error).__name__).lower()})",
            "Look whether its disk is full or read-only, and whether it belongs to the user who runs Trellis.",
        )
    free = shutil.disk_usage(folder).free
    told = f"{free / 1024**3:.1f} GiB free in the data folder"
    advice = "Make room: a full disk stops tool calls, since they could not be recorded."
    if free < LEAST_ROOM_BYTES:
        return _failed(part, told, advice)
    return _look(part, told, advice) if free < ROOM_BYTES else _ok(part, told)


def _triggers(part: str) -> Finding:
    if count_missing():
        # Those of new tables come with them, and nobody has taken them away.
        return _look(
            part, "not looked at while migrations are missing", "Run: python3 manage.py migrate"
        )
    faults = trigger_check.find_faults()
    if faults:
        return _failed(
            part,
            " ".join(faults),
            "Find out who did it, then run: python3 manage.py verify_audit --restore-triggers",
        )
    return _ok(part, "those that keep the log append-only are all there")


def _queues(part: str) -> Finding:
    told = []
    if settings.TRELLIS.redis_url is not None:
        from config.queues import read_queue

        waiting = read_queue()
        tasks = ngettext("%s task waits", "%s tasks wait", waiting.tasks) % whole(waiting.tasks)
        if waiting.tasks > QUEUE_LENGTH or waiting.seconds > QUEUE_SECONDS:
            is_late = waiting.seconds >= QUEUE_SECONDS
            since = f", the oldest for {whole(waiting.seconds / 60)} minutes" if is_late else ""
            advice = "Start workers, or start more of them."
            return _look(part, f"{tasks} for a worker{since}", advice)
        told.append(tasks)
    spool = spool_size()
    if spool.files:
        return _look(
            part,
            ngettext(
                "%s file with %s bytes waits in audit-spool",
                "%s files with %s bytes wait in audit-spool",
                spool.files,
            )
            % (whole(spool.files), whole(spool.size_bytes)),
            "They are entered as soon as the database takes writes and a server runs.",
        )
    failing = AuditStream.objects.across_workspaces().filter(is_paused=False, state__failures__gt=0)
    if number := failing.count():
        return _look(
            part,
            ngettext("%s audit stream cannot deliver", "%s audit streams cannot deliver", number)
            % whole(number),
            "Their pages under Audit › Streams show the reason.",
        )
    return _ok(part, ", ".join([*told, "nothing is held back"]))


def _jobs(part: str) -> Finding:
    from config.installation.jobs import JobState, read_jobs  # no other check needs Celery

    found = read_jobs()
    if found.problem:
        if found.has_begun:
            return _look(part, found.problem, _JOBS_ADVICE)
        return _ok(part, found.problem)
    if found.failed or found.late:
        told = [
            f"“{one.what}” {'failed' if one.state is JobState.FAILED else 'is late'}"
            for one in found.jobs
            if one.state in {JobState.FAILED, JobState.LATE}
        ]
        more = f", and {whole(len(told) - _MOST_TOLD)} more" if len(told) > _MOST_TOLD else ""
        return _look(part, ", ".join(told[:_MOST_TOLD]) + more, _JOBS_ADVICE)
    workers = ngettext("%s worker is alive", "%s workers are alive", found.alive)
    return _ok(part, f"all run, and {workers % whole(found.alive)}")


_MOST_TOLD: Final = 3
_JOBS_ADVICE: Final = "Look under Admin, State of the installation, Background jobs. Workers' logs say why a job failed."


def _seals(part: str) -> Finding:
    found = health()
    if found.is_key_missing:
        return _failed(
            part,
            "the key that signed the log is not in the settings",
            "Put it behind the first in TRELLIS_AUDIT_SIGNING_KEYS and restart.",
        )
    if found.oldest_pending_seconds > SEALING_SECONDS:
        return _look(
            part,
            f"{found.pending} entries wait, the oldest for {found.oldest_pending_seconds / 60:.0f} minutes",
            "Sealing is a server's or worker's work: look whether one runs.",
        )
    if found.verified_result not in {None, "whole"}:
        return _failed(
            part,
            f"the last verification found the log {found.verified_result}",
            "Run: python3 manage.py verify_audit --json, and read docs/audit.md before you change anything.",
        )
    if found.verified_at is None:
        return _ok(part, "not verified yet; that happens each night")
    if timezone.now() - found.verified_at > VERIFIED:
        return _look(
            part,
            f"last verified on {found.verified_at:%Y-%m-%d}",
            "The scheduler verifies each night: look whether it runs (celery beat).",
        )
    return _ok(part, f"whole when last verified, {found.verified_at:%Y-%m-%d %H:%M} UTC")


def _restores(part: str) -> Finding:
    if restore.is_unconfirmed():
        return _look(
            part,
            "the database was restored from a backup",
            "Look at what is missing. Then confirm it under Admin, State of the installation, or run: python3 manage.py confirm_restore",
        )
    return _ok(part, "none to confirm")


def _mail(part: str) -> Finding:
    if settings.TRELLIS.email_host is None:
        text = f"written to files in {settings.EMAIL_FILE_PATH}"
        if settings.TRELLIS.database_url is None:
            return _ok(part, text)
        return _look(part, text, "Set EMAIL_HOST, so that invitations and reports reach people.")
    return _ok(part, f"sent through {settings.TRELLIS.email_host}")


def _notifications(part: str) -> Finding:
    devices: Any = PushDevice.objects.across_workspaces()
    known = [key.id for key in vapid_keys()]
    if lost := devices.living().exclude(key_id__in=known).count():
        return _look(
            part,
            ngettext(
                "%s device takes notifications from a key that is not in the settings",
                "%s devices take notifications from a key that is not in the settings",
                lost,
            )
            % whole(lost),
            "Put it behind the first in TRELLIS_PUSH_KEYS and restart. If it is lost, people add those devices again.",
        )
    failing = devices.living().exclude(last_error="").count()
    count = devices.living().count()
    number = ngettext("%s device", "%s devices", count) % whole(count)
    told = f"{number}, signed with key {known[0]}"
    if failing:
        return _look(
            part,
            f"{told}; the last notification did not reach {failing} of them",
            "Look whether Trellis may connect to push services. The people's Reminders page shows the reason.",
        )
    return _ok(part, told)


_AWAY: Final = frozenset(fault.text for fault in (CONNECTIONS, DAMAGED, REFUSED, SILENT))
_WITHOUT_DATABASE: Final = frozenset({"Redis", "disk", "mail"})
_CHECKS: Final[dict[str, Callable[[str], Finding]]] = {
    "versions": _versions,
    "settings": _settings,
    "database": _database,
    "row-level security": _row_security,
    "Redis": _redis,
    "clocks": _clocks,
    "keys": _keys,
    "disk": _disk,
    "triggers": _triggers,
    "queues": _queues,
    "background jobs": _jobs,
    "seals": _seals,
    "restores": _restores,
    "mail": _mail,
    "notifications": _notifications,
}
