"""OpenTelemetry: off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. What leaves has been redacted.

A trace is ours from its first span: a caller's `traceparent` is not taken, since trace ids stand in the audit log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.deprecation import MiddlewareMixin
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from workspaces.process.streams import when_ended
from workspaces.process.tracing import mark_failed

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_tracer = trace.get_tracer("trellis.http")
_FIRST_SERVER_ERROR: Final = 500


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
    from config.telemetry.trace_export import begin

    return begin(exporter)


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
            # A token serves only in the context that it is of, and a stream ends in another one.
            otel_context.detach(token)
            when_ended(request, response, span.end)
        return response
