"""Gauges of the log: what operators read of sealing, the spool, streams and alerts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import Count

from audit.health import LogHealth, health
from audit.models import Alert, AuditStream
from audit.services.spool import spool_size
from audit.streams.reading import Lag, lag_of
from workspaces.process import metrics

_MOST_STREAMS: Final = 50
_kept_health: Final = metrics.CachedValue[LogHealth]()
_kept_lags: Final = metrics.CachedValue[list[tuple[tuple[str, str], Lag]]]()


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
    return metrics.one(spool_size().files)


def _spool_bytes() -> Iterable[tuple[Sequence[str], float]]:
    return metrics.one(spool_size().size_bytes)


def _lags() -> list[tuple[tuple[str, str], Lag]]:
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
