"""Tracing as it is with a collector, for one test; afterwards there is none again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

from config.telemetry.tracing import configure_tracing
from tests.patience import PATIENCE


class Collected:
    """What has arrived, as it left."""

    def __init__(self, provider: Any, exporter: InMemorySpanExporter) -> None:
        self._provider = provider
        self._exporter = exporter

    def spans(self) -> list[ReadableSpan]:
        self._provider.force_flush()
        return list(self._exporter.get_finished_spans())

    def named(self, start: str) -> list[ReadableSpan]:
        return [span for span in self.spans() if span.name.startswith(start)]

    def awaited(self, start: str, seconds: float = PATIENCE) -> ReadableSpan:
        """The first span of that name, which another thread may end a moment later."""
        until = time.monotonic() + seconds
        while not (found := self.named(start)):
            assert time.monotonic() < until, f"there was no span {start}"
            time.sleep(0.01)
        return found[0]


@contextmanager
def collecting(other: SpanExporter | None = None) -> Iterator[Collected]:
    """Args:
    other: sends to a real collector.
    """
    exporter = InMemorySpanExporter()
    provider = configure_tracing(other or exporter)
    assert provider is not None
    try:
        yield Collected(provider, exporter)
    finally:
        provider.shutdown()
        trace._TRACER_PROVIDER = None
        trace._TRACER_PROVIDER_SET_ONCE = Once()
        for module in list(sys.modules.values()):
            tracer = getattr(module, "_tracer", None)
            if isinstance(tracer, trace.ProxyTracer):
                tracer._real_tracer = None
