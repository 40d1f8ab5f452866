"""``/healthz``: the process lives. ``/readyz``: it can serve, that is, database, schema and Redis answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from audit.sealing.rotation import find_missing_key
from audit.sealing.signing import SigningKeyMissing
from workspaces import restoring
from workspaces.leaving import is_leaving

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Say that the process answers; asks nothing of anybody else."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Say whether this process can serve; 503 names the parts that cannot, without their addresses."""
    checks: dict[str, Callable[[], None]] = {
        "database": _check_database,
        "cache": _check_cache,
        "layer": _check_layer,
    }
    results = {name: _run(name, check) for name, check in checks.items()}
    if is_leaving():
        results["process"] = "stopping"
    is_ready = all(result == "ok" for result in results.values())
    if results["database"] == "ok":
        results["log_signing"] = _run("log_signing", _check_log_signing)
    # A log that cannot be signed is an alarm, and no reason to send people elsewhere.
    is_well = all(result == "ok" for result in results.values())
    status = "unavailable" if not is_ready else "ok" if is_well else "degraded"
    told: dict[str, object] = {"status": status, "checks": results}
    if results["database"] == "ok" and request.user.is_authenticated and request.user.is_superuser:
        told["restore"] = "unconfirmed" if restoring.is_unconfirmed() else "none"
    return JsonResponse(told, status=200 if is_ready else 503)


def _run(name: str, check: Callable[[], None]) -> str:
    try:
        check()
    except Exception:
        logger.warning("readiness check failed", extra={"check": name}, exc_info=True)
        return "failed"
    return "ok"


def _check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise DatabaseError("migrations are missing")


def _check_log_signing() -> None:
    if (missing := find_missing_key()) is not None:
        raise SigningKeyMissing(missing)


def _check_cache() -> None:
    cache.set("readyz", "1", 10)
    if cache.get("readyz") != "1":
        raise RuntimeError("the cache forgot a value")


def _check_layer() -> None:
    if get_channel_layer() is None:
        raise RuntimeError("no channel layer")
    if settings.TRELLIS.redis_url and not settings.CELERY_BROKER_URL:
        raise RuntimeError("no broker")
