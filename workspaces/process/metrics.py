"""What operators read of this process: one registry, counters that cost a few microseconds, gauges that are read when asked.

Labels are bounded: whatever a tenant names ends in `other` beyond a number of distinct values, and no label holds a
person or a conversation.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric

from workspaces.process.outages import LastingOutage

logger = logging.getLogger(__name__)

# Each counter's time of creation would be a series more, which nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's
registry: Final = CollectorRegistry(auto_describe=False)
OTHER: Final = "other"
MOST_NAMES: Final = 100
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
WAITS: Final = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)

T = TypeVar("T")
Read = Callable[[], Iterable[tuple[Sequence[str], float]]]


class BoundedNames:
    """The first so many names stand for themselves, all others together for `other`."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> str:
        if name in self._known:
            return name
        if not name:
            return "none"
        with self._lock:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(name)
        return name


server_name: Final = BoundedNames()

tool_calls: Final = Counter(
    "trellis_tool_calls",
    "Calls that ended, by how.",
    ["server", "outcome", "source"],
    registry=registry,
)
refusals: Final = Counter(
    "trellis_refusals", "Calls that were refused, by layer.", ["layer", "source"], registry=registry
)
call_seconds: Final = Histogram(
    "trellis_tool_call_seconds",
    "Seconds from sending a call to its end.",
    ["server"],
    buckets=SECONDS,
    registry=registry,
)
approval_wait: Final = Histogram(
    "trellis_approval_wait_seconds",
    "Seconds from asking a person to the answer, or to the end of waiting for it.",
    ["answer"],
    buckets=WAITS,
    registry=registry,
)
http_requests: Final = Counter(
    "trellis_http_requests",
    "HTTP requests, by named route.",
    ["method", "route", "status"],
    registry=registry,
)
http_seconds: Final = Histogram(
    "trellis_http_request_seconds",
    "Seconds until an answer began, and at the MCP endpoint until it ended.",
    ["route"],
    buckets=SECONDS,
    registry=registry,
)


class _Gauge:
    """A value that is looked up when metrics are read; one that cannot be is left out, and the others stay."""

    def __init__(self, name: str, text: str, labels: Sequence[str], read: Read) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._read = read
        self._outage = LastingOutage(logger, begins="metric_not_read", ends="metric_read_again")

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        try:
            for labels, value in self._read():
                family.add_metric([str(label) for label in labels], value)
        except Exception as error:
            # Prometheus reads every few seconds, so what is away is told once.
            self._outage.note(error, metric=self._name)
            logger.debug("metric_not_read", extra={"metric": self._name}, exc_info=True)
        else:
            self._outage.is_over(metric=self._name)
        yield family


class CachedValue(Generic[T]):
    """A value that several gauges of one reading share, looked up once."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._until = 0.0
        self._value: T | None = None

    def __call__(self, read: Callable[[], T]) -> T:
        if self._value is None or time.monotonic() >= self._until:
            self._value = read()
            self._until = time.monotonic() + self._seconds
        return self._value


_known: set[str] = set()


def gauge(name: str, text: str, read: Read, *, labels: Sequence[str] = ()) -> None:
    """Have a value looked up at each reading; named once, however often an app is loaded."""
    if name not in _known:
        _known.add(name)
        registry.register(_Gauge(name, text, labels, read))


def one(value: float) -> list[tuple[Sequence[str], float]]:
    """The single value of a gauge without labels."""
    return [((), value)]
