"""OpenTelemetry: off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. What leaves has been redacted.

A trace is ours from its first span: a caller's `traceparent` is not taken, since trace ids stand in the audit log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.deprecation import MiddlewareMixin
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import SpanKind, Status

from workspaces.redaction import EVERY_WORKSPACE, MASK, is_secret_key, redact_text
from workspaces.tracing import mark_failed

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

logger = logging.getLogger(__name__)

_tracer = trace.get_tracer("trellis.http")
_UNSENT: Final = frozenset({"exception.message", "exception.stacktrace"})
_FIRST_SERVER_ERROR: Final = 500


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


def configure_tracing(exporter: SpanExporter | None = None) -> TracerProvider | None:
    """Begin to trace in this process, if a collector is configured; called once, after any fork.

    Args:
        exporter: another one than OTLP over HTTP.
    """
    if exporter is None:
        if settings.TRELLIS.otel_endpoint is None:
            return None
        # Loaded only where it is used; it reads the standard's other variables (headers, timeout) itself.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "trellis"}))
    provider.add_span_processor(BatchSpanProcessor(RedactingExporter(exporter)))
    trace.set_tracer_provider(provider)
    return provider


class TracingMiddleware(MiddlewareMixin):
    """One span for each request, named by its route and never by its address."""

    def process_request(self, request: HttpRequest) -> None:
        """Begin it."""
        span = _tracer.start_span(
            str(request.method),
            context=otel_context.Context(),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": str(request.method)},
        )
        if not span.is_recording():
            return
        token = otel_context.attach(trace.set_span_in_context(span))
        request._trace = (span, token)  # type: ignore[attr-defined]

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """End it, with what came of it."""
        found = getattr(request, "_trace", None)
        if found is not None:
            span, token = found
            match = request.resolver_match
            if match is not None:
                span.update_name(f"{request.method} {match.route}")
                span.set_attribute("http.route", match.route)
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= _FIRST_SERVER_ERROR:
                mark_failed(span, str(response.status_code))
            otel_context.detach(token)
            span.end()
        return response
