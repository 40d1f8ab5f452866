"""``/healthz``: the process lives. ``/readyz``: it can serve: the database answers, its schema fits, and writes are taken."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from uuid_utils.compat import uuid7

from audit.proof.marks import states_other_key
from audit.proof.signing import SigningKeyMissing
from audit.sealing.rotation import find_missing_key
from config.workers.queues import publish_to_redis
from workspaces import restore_detection
from workspaces.database import give_back_connections
from workspaces.database.patience import patience
from workspaces.database.postgresql import policies
from workspaces.people.session_store import delete_sessions
from workspaces.process.outages import LastingOutage
from workspaces.process.shutdown import is_shutting_down

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.0
"""For the database to answer one of our statements; balancers give a look a few seconds."""
PROOF_SECONDS: Final = 3.0
"""How long a proven write counts, and one that failed."""
_PROOF_BYTES: Final = 64 * 1024
"""More than one page, so that a database that is full has no room for it."""


class WriteProof:
    """Whether something can be written, tried at most every few seconds however often somebody asks."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._tried_at = -math.inf
        self._problem: Exception | None = None

    def check(self) -> None:
        """Raise what kept the newest write from succeeding."""
        if not self._lock.acquire(timeout=PROOF_SECONDS):
            raise TimeoutError("the write before has not ended")
        try:
            if time.monotonic() - self._tried_at >= PROOF_SECONDS:
                try:
                    self._write()
                except Exception as error:  # noqa: BLE001  raised below
                    self._problem = error
                else:
                    self._problem = None
                self._tried_at = time.monotonic()
            problem = self._problem
        finally:
            self._lock.release()
        if problem is not None:
            raise problem.with_traceback(None)

    def forget(self) -> None:
        """Have the next check write."""
        self._tried_at = -math.inf


class PoliciesFit:
    """Whether row-level security is in the database as this process is set; asked until it is, and then no more.

    With policies that the process does not know of, every page would look empty.
    """

    def __init__(self) -> None:
        self._is_known = False

    def check(self) -> None:
        """Raise if it is not."""
        if self._is_known or connection.vendor != "postgresql":
            return
        if not policies.is_in_place():
            raise DatabaseError("the policies do not fit TRELLIS_ROW_SECURITY")
        self._is_known = True

    def forget(self) -> None:
        """Have the next check ask."""
        self._is_known = False


def write_to_database() -> None:
    """Raise DatabaseError unless the database takes a write; nothing of it stays."""
    key = f"write-proof-{uuid7().hex}"[:40]
    # A row that means nothing, already over: if it cannot be deleted, it goes with the sessions that have ended.
    Session.objects.create(
        session_key=key,
        session_data="x" * _PROOF_BYTES,
        expire_date=timezone.now() - timedelta(days=1),
    )
    delete_sessions([key])


def write_to_data_folder() -> None:
    """Raise OSError unless the data folder takes a write; nothing of it stays."""
    path = settings.TRELLIS.data_dir / f".write-proof-{os.getpid()}"
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROOF_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)


database_writes: Final = WriteProof(write_to_database)
policies_fit: Final = PoliciesFit()
data_folder_writes: Final = WriteProof(write_to_data_folder)

_ADVICE: Final = {
    "database": "The database does not answer, or its migrations are missing.",
    "row_security": "The database's policies do not fit TRELLIS_ROW_SECURITY. Run migrate as the tables' owner.",
    "database_writes": "The database takes no writes. Look whether its disk is full or it is read-only.",
    "data_folder": "Nothing can be written to the data folder. Look whether its disk is full.",
    "cache": "The cache (Redis) does not answer.",
    "layer": "Nudges between processes (Redis) do not work.",
    "log_key": "TRELLIS_AUDIT_KEY of this process is not the audit log's. Put the log's key back and restart.",
    "log_signing": "A signing key of the audit log is missing.",
}
_outages: Final = {
    name: LastingOutage(logger, begins="readiness check failed", ends="readiness check passed")
    for name in _ADVICE
}


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Say that the process answers; asks nothing of anybody else."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Say whether this process can serve; 503 names the parts that cannot, without their addresses."""
    with patience(ANSWER_SECONDS):
        return _look_at_all(request)


def _look_at_all(request: HttpRequest) -> JsonResponse:
    results = {"database": _run("database", _check_database)}
    has_database = results["database"] == "ok"
    if has_database:
        results["row_security"] = _run("row_security", policies_fit.check)
        results["database_writes"] = _run("database_writes", database_writes.check)
        # What it writes into the log would look altered for good, so others serve until its key is right.
        results["log_key"] = _run("log_key", _check_log_key)
    results["data_folder"] = _run("data_folder", data_folder_writes.check)
    if is_shutting_down():
        results["process"] = "stopping"
    is_ready = all(result == "ok" for result in results.values())
    # Turns go on without these, and where one is away it is so for every process: sending people elsewhere helps nobody.
    results["cache"] = _run("cache", _check_cache)
    # Both are of one Redis: what does not answer is not waited for twice.
    is_there = results["cache"] == "ok"
    results["layer"] = _run("layer", _check_layer) if is_there else "failed"
    if has_database:
        results["log_signing"] = _run("log_signing", _check_log_signing)
    is_well = all(result == "ok" for result in results.values())
    status = "unavailable" if not is_ready else "ok" if is_well else "degraded"
    answer: dict[str, object] = {"status": status, "checks": results}
    if has_database and request.user.is_authenticated and request.user.is_superuser:
        answer["restore"] = "unconfirmed" if restore_detection.is_unconfirmed() else "none"
        answer["problems"] = [
            _ADVICE[name] for name, result in results.items() if result == "failed"
        ]
    return JsonResponse(answer, status=200 if is_ready else 503)


def _run(name: str, check: Callable[[], None]) -> str:
    try:
        check()
    except (DatabaseError, OSError, RuntimeError) as error:
        # What may be away. A balancer asks every few seconds.
        _outages[name].note(error, check=name)
        give_back_connections()  # or the next check would fail by this one's
        return "failed"
    except Exception as error:
        logger.exception(
            "readiness check failed", extra={"check": name, "reason": type(error).__name__}
        )
        return "failed"
    _outages[name].is_over(check=name)
    return "ok"


def _check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise DatabaseError("migrations are missing")


def _check_log_key() -> None:
    if states_other_key():
        raise RuntimeError("TRELLIS_AUDIT_KEY is another one")


def _check_log_signing() -> None:
    if (missing := find_missing_key()) is not None:
        raise SigningKeyMissing(missing)


def _check_cache() -> None:
    # A key of its own: what another look wrote would hide that nothing can be written any more.
    key = f"readyz-{uuid7().hex}"
    cache.set(key, "1", 10)
    if cache.get(key) != "1":
        raise RuntimeError("the cache forgot a value")


def _check_layer() -> None:
    if settings.TRELLIS.redis_url is None:
        return
    from redis import RedisError

    try:
        publish_to_redis()
    except RedisError as error:
        raise RuntimeError("Redis takes no nudges") from error
