"""What becomes of spans where a collector is configured: redacted, then sent. Loaded only there."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import Status

from workspaces.redaction import EVERY_WORKSPACE, MASK, is_secret_key, redact_text

END_SECONDS: Final = 2.0
"""For spans that are still here when the process ends."""
_UNSENT: Final = frozenset({"exception.message", "exception.stacktrace"})


def begin(exporter: SpanExporter) -> TracerProvider:
    """Hand every span of this process to an exporter."""
    resource = Resource.create({"service.name": "trellis"})
    # Its own end waits for half a minute for a collector that does not answer.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(RedactingExporter(exporter)))
    trace.set_tracer_provider(provider)
    _end_with_the_process(provider)
    return provider


def _end_with_the_process(provider: TracerProvider) -> None:
    """Send what is left when the process ends, and wait no longer for that than others wait for the process."""
    is_over = threading.Event()

    def end() -> None:
        is_over.wait()
        provider.shutdown()

    # Begun now: at the end of a process no thread begins any more.
    ending = threading.Thread(target=end, name="last-spans", daemon=True)
    ending.start()

    @atexit.register
    def wait() -> None:
        is_over.set()
        ending.join(END_SECONDS)


class RedactingExporter(SpanExporter):
    """Hands spans on without anything secret in them, whoever made them; texts of exceptions stay here."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Redact and export."""
        return self._inner.export([redacted(span) for span in spans])

    def shutdown(self) -> None:
        """End with what is under way."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what waits."""
        return self._inner.force_flush(timeout_millis)


def redacted(span: ReadableSpan) -> ReadableSpan:
    """The same span without secrets, texts of exceptions and descriptions of failures."""
    return ReadableSpan(
        name=_redacted(span.name),
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_cleaned(span.attributes),
        events=[
            Event(event.name, _cleaned(event.attributes), event.timestamp) for event in span.events
        ],
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _redacted(text: str) -> str:
    return redact_text(text, workspace_id=EVERY_WORKSPACE)


def _cleaned(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (attributes or {}).items():
        if name in _UNSENT:
            continue
        if isinstance(value, str):
            found[name] = MASK if is_secret_key(name) else _redacted(value)
        elif isinstance(value, Sequence):
            found[name] = [_redacted(one) if isinstance(one, str) else one for one in value]
        else:
            found[name] = value
    return found
