"""What a request is part of: spans for OpenTelemetry, and the ids that log lines and entries carry.

Without an exporter (`config/telemetry/tracing.py`) a span costs next to nothing and records nothing. Spans hold names, ids and
numbers, never content; of an exception they hold its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

__all__ = ["Span", "SpanKind", "bound", "current_trace_id", "span"]

_tracer = trace.get_tracer("trellis")
Attribute = str | int | float | bool


@contextmanager
def span(
    name: str,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, Attribute] | None = None,
) -> Iterator[Span]:
    """One piece of work; what is begun inside is part of it, on other threads and loops too."""
    with _tracer.start_as_current_span(
        name,
        kind=kind,
        attributes=dict(attributes or {}),
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            mark_failed(current, type(error).__name__)
            raise


def mark_failed(current: Span, kind: str) -> None:
    """Say of a span that it failed, and with what class of failure."""
    current.set_attribute("error.type", kind)
    current.set_status(Status(StatusCode.ERROR))


def current_trace_id() -> str:
    """The id of the trace that this is part of, 32 hexadecimal digits; "" without one."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else ""


@contextmanager
def bound(**ids: object) -> Iterator[None]:
    """Put ids into every log line that is written inside; those that are None are left out."""
    with structlog.contextvars.bound_contextvars(
        **{name: str(value) for name, value in ids.items() if value is not None}
    ):
        yield
