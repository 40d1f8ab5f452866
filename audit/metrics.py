"""What operators read of the log: counted as entries are written, so that every door counts alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Count

from audit.actions import Action
from audit.models import Alert, AuditEntry, AuditStream
from workspaces import metrics

if TYPE_CHECKING:
    from audit.health import LogHealth
    from audit.streams.reading import Lag

_FINISHED: Final = frozenset(
    {
        Action.TOOL_CALL_FINISHED.value,
        Action.RESOURCE_READ_FINISHED.value,
        Action.PROMPT_GET_FINISHED.value,
    }
)
_REFUSED: Final = frozenset(
    {
        Action.TOOL_CALL_REFUSED.value,
        Action.RESOURCE_READ_REFUSED.value,
        Action.PROMPT_GET_REFUSED.value,
    }
)
_ANSWERS: Final = {
    Action.APPROVAL_GRANTED.value: "granted",
    Action.APPROVAL_REFUSED.value: "refused",
    Action.APPROVAL_EXPIRED.value: "expired",
}
_MOST_STREAMS: Final = 50
_kept_health: Final = metrics.Kept["LogHealth"]()
_kept_lags: Final = metrics.Kept["list[tuple[tuple[str, str], Lag]]"]()


def count_entry(entry: AuditEntry) -> None:
    """Count what was just written."""
    if entry.action in _FINISHED:
        server = metrics.server_name(entry.server_name)
        metrics.tool_calls.labels(server, entry.outcome or "none", entry.source).inc()
        if entry.duration_ms is not None:
            metrics.call_seconds.labels(server).observe(entry.duration_ms / 1000)
    elif entry.action in _REFUSED:
        metrics.refusals.labels(entry.refused_by or "none", entry.source).inc()
    elif entry.action in _ANSWERS and entry.call_id is not None:
        _count_wait(entry)


def _count_wait(entry: AuditEntry) -> None:
    asked = AuditEntry.objects.across_workspaces().filter(
        call_id=entry.call_id, action=Action.APPROVAL_REQUESTED.value
    )
    with transaction.atomic():  # should it fail, the caller's own transaction goes on
        at = asked.order_by().values_list("created_at", flat=True).first()
    if at is not None:
        waited = max(0.0, (entry.created_at - at).total_seconds())
        metrics.approval_wait.labels(_ANSWERS[entry.action]).observe(waited)


def register() -> None:
    """Offer the log's gauges. All but the spool are the whole installation's, and alike in each process."""
    metrics.gauge("trellis_log_pending_entries", "Entries that are not sealed yet.", _pending)
    metrics.gauge("trellis_log_sealing_lag_seconds", "Age of the oldest of them.", _sealing_lag)
    metrics.gauge(
        "trellis_log_checkpoint_age_seconds", "Since the newest signed statement.", _checkpoint_age
    )
    metrics.gauge(
        "trellis_log_signing_key_missing",
        "1: nothing can be signed, because the key in use is not in the settings.",
        _key_missing,
    )
    metrics.gauge(
        "trellis_log_verified_whole",
        "1: the last check found the log whole; 0: it did not.",
        _verified,
    )
    metrics.gauge("trellis_spool_files", "Files that wait to be entered, here.", _spool_files)
    metrics.gauge("trellis_spool_bytes", "Their size.", _spool_bytes)
    metrics.gauge(
        "trellis_stream_lag_entries",
        "Sealed entries that a sink has not confirmed.",
        _stream_entries,
        labels=["stream", "kind"],
    )
    metrics.gauge(
        "trellis_stream_lag_seconds",
        "Age of the oldest of them.",
        _stream_seconds,
        labels=["stream", "kind"],
    )
    metrics.gauge("trellis_streams_failing", "Streams whose last attempt failed.", _failing)
    metrics.gauge(
        "trellis_alerts_open", "Alerts that have not ended, by kind.", _alerts, labels=["condition"]
    )


def _health() -> LogHealth:
    from audit.health import health

    return _kept_health(health)


def _pending() -> Iterable[tuple[Sequence[str], float]]:
    return metrics.one(_health().pending)


def _sealing_lag() -> Iterable[tuple[Sequence[str], float]]:
    return metrics.one(_health().oldest_pending_seconds)


def _checkpoint_age() -> Iterable[tuple[Sequence[str], float]]:
    age = _health().checkpoint_age_seconds
    return [] if age is None else metrics.one(age)


def _key_missing() -> Iterable[tuple[Sequence[str], float]]:
    return metrics.one(float(_health().is_key_missing))


def _verified() -> Iterable[tuple[Sequence[str], float]]:
    result = _health().verified_result
    return [] if result is None else metrics.one(float(result == "whole"))


def _spool_files() -> Iterable[tuple[Sequence[str], float]]:
    from audit.spool import spool_size

    return metrics.one(spool_size().files)


def _spool_bytes() -> Iterable[tuple[Sequence[str], float]]:
    from audit.spool import spool_size

    return metrics.one(spool_size().size_bytes)


def _lags() -> list[tuple[tuple[str, str], Lag]]:
    from audit.streams.reading import lag_of

    def read() -> list[tuple[tuple[str, str], Lag]]:
        rows = AuditStream.objects.across_workspaces().filter(is_paused=False)
        return [
            ((str(one.pk), one.kind), lag_of(one)) for one in rows.order_by("pk")[:_MOST_STREAMS]
        ]

    return _kept_lags(read)


def _stream_entries() -> Iterable[tuple[Sequence[str], float]]:
    return [(labels, lag.entries) for labels, lag in _lags()]


def _stream_seconds() -> Iterable[tuple[Sequence[str], float]]:
    return [(labels, lag.seconds) for labels, lag in _lags()]


def _failing() -> Iterable[tuple[Sequence[str], float]]:
    rows = AuditStream.objects.across_workspaces().filter(is_paused=False, state__failures__gt=0)
    return metrics.one(rows.count())


def _alerts() -> Iterable[tuple[Sequence[str], float]]:
    rows = Alert.objects.across_workspaces().filter(ended_at=None).order_by()
    counted = rows.values("rule__condition").annotate(count=Count("pk"))
    return [((row["rule__condition"],), row["count"]) for row in counted]
