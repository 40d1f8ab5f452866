"""`/metrics` for Prometheus, the count of HTTP requests, and what waits in Celery's queue."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Max, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from config.workers.queues import QUEUE, read_queue
from workspaces.database import database_now
from workspaces.database.patience import shared_patience
from workspaces.middleware import client_address
from workspaces.process import metrics
from workspaces.process.streams import when_ended

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase

ANSWER_SECONDS: Final = 4.0
"""For all gauges that ask the database. Prometheus gives a reading up after ten seconds, and Redis needs some, too."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Everything of this process and of the installation, to whom the owner lets read it; else nothing is here."""
    if not _may_read(request):
        raise Http404
    # What this process counts must be told while the database is away, too: nobody waits longer than Prometheus does.
    with shared_patience(ANSWER_SECONDS):
        text = generate_latest(metrics.registry)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    given = request.headers.get("Authorization")
    if given is not None:
        # Such a request may come under any name. A page that has a browser send it must not get in by its network.
        return _is_token(given.removeprefix("Bearer "))
    address = client_address(request)
    if not address:
        return False
    host = ip_address(address)
    networks = settings.TRELLIS.metrics_networks
    return any(host.version == one.version and host in one for one in networks)


def _is_token(given: str) -> bool:
    token = settings.TRELLIS.metrics_token
    return token is not None and hmac.compare_digest(
        given.encode(), token.get_secret_value().encode()
    )


class RequestMetricsMiddleware(MiddlewareMixin):
    """Counts requests by named route: a few microseconds each."""

    def process_request(self, request: HttpRequest) -> None:
        """Note when it began."""
        request._metrics_began = time.perf_counter()  # type: ignore[attr-defined]

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Count it. Routes come from our own table, so there is a bounded number of them."""
        match = request.resolver_match
        route = (match.view_name if match is not None else "") or "none"
        method = request.method if request.method in _METHODS else metrics.OTHER
        metrics.http_requests.labels(method, route, str(response.status_code)).inc()
        began = getattr(request, "_metrics_began", None)
        if began is not None:
            seconds = metrics.http_seconds.labels(route)
            when_ended(request, response, lambda: seconds.observe(time.perf_counter() - began))
        return response


def register() -> None:
    """Offer the gauges of background work, and of what the installation is wired to."""
    metrics.gauge(
        "trellis_jobs_age_seconds",
        "Since a background job ended. Some run every few seconds, and are noted each half minute.",
        _jobs_age,
    )
    if settings.TRELLIS.redis_url is not None:
        metrics.gauge(
            "trellis_celery_queue_length",
            "Tasks that no worker has taken.",
            lambda: [((QUEUE,), float(read_queue().tasks))],
            labels=["queue"],
        )
        metrics.gauge(
            "trellis_celery_oldest_task_seconds",
            "How long the oldest task has waited for a worker.",
            lambda: [((QUEUE,), read_queue().seconds)],
            labels=["queue"],
        )


def _jobs_age() -> Iterable[tuple[Sequence[str], float]]:
    # Models are there only after all apps are.
    from workspaces.jobs.backup_notes import BACKUP
    from workspaces.models import BackgroundJob, InstalledVersion

    newest = BackgroundJob.objects.exclude(pk=BACKUP).aggregate(at=Max("ended_at"))["at"]
    # Where none ever ran, since there is an installation.
    since = newest or InstalledVersion.objects.aggregate(at=Min("since"))["at"]
    return [] if since is None else metrics.one((database_now() - since).total_seconds())
