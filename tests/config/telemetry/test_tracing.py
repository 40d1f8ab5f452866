"""Spans of requests and tasks, what is taken out of them, and the ids that travel with a task."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import structlog
from celery.contrib.testing.worker import start_worker
from celery.signals import worker_process_init
from django.conf import settings
from django.test import Client
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from config.bootstrap import ROOT
from config.celery import app
from config.telemetry.tracing import configure_tracing
from config.workers.celery_context import HEADER
from tests.config.telemetry.tracing import collecting
from tests.patience import PATIENCE
from workspaces.process.tracing import bound, current_trace_id, span
from workspaces.redaction import remember_secret


def test_without_an_endpoint_there_is_no_tracing() -> None:
    assert configure_tracing() is None
    with span("nothing") as current:
        assert not current.is_recording()
        assert current_trace_id() == ""


def test_what_leaves_is_redacted() -> None:
    """SEC-94: names, attributes, events and failures, also of spans that libraries make."""
    remember_secret("canary-of-a-span", workspace_id="of any workspace")
    with collecting() as collected:
        foreign = trace.get_tracer("a-library")
        with (
            pytest.raises(ValueError, match="canary"),
            foreign.start_as_current_span("GET canary-of-a-span") as current,
        ):
            current.set_attribute("url", "https://x/?k=canary-of-a-span")
            current.set_attribute("authorization", "something")
            current.set_attribute("many", ["canary-of-a-span", "b"])
            current.add_event("e", {"text": "canary-of-a-span"})
            raise ValueError("canary-of-a-span in a message")
        scopes = [(span.instrumentation_scope, span) for span in collected.spans()]
        # Threads of earlier tests may end spans of their own now.
        (found,) = [span for scope, span in scopes if scope and scope.name == "a-library"]
        text = found.to_json()
    assert "canary" not in text
    assert "something" not in text
    assert "exception.type" in text
    assert "stacktrace" not in text


@pytest.mark.django_db
def test_a_request_is_a_span_named_by_its_route() -> None:
    """A caller's own trace id is not taken: it would stand in the audit log."""
    foreign = "0af7651916cd43dd8448eb211c80319c"
    with collecting() as collected:
        Client().get(
            "/healthz?q=canary", headers={"traceparent": f"00-{foreign}-b7ad6b7169203331-01"}
        )
        Client().get("/w/nobody-knows/audit/")
        first, second = collected.named("GET")
    assert first.name == "GET healthz"
    assert first.attributes is not None
    assert first.attributes["http.response.status_code"] == 200
    assert first.context is not None
    assert f"{first.context.trace_id:032x}" != foreign
    assert second.name.startswith("GET w/<slug:workspace_slug>")
    assert "canary" not in first.to_json()


seen: list[dict[str, Any]] = []
ran = threading.Event()


@app.task(name="tests.look_around")
def look_around() -> None:
    seen.append({**structlog.contextvars.get_contextvars(), "trace": current_trace_id()})
    ran.set()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs what is in its own queue, and none of what a real worker's process begins beside it."""
    monkeypatch.setattr(worker_process_init, "send", lambda **_: None)
    seen.clear()
    ran.clear()
    with start_worker(
        app, pool="solo", perform_ping_check=False, queues="observing", loglevel="ERROR"
    ):
        yield


@pytest.mark.django_db(transaction=True)
def test_a_task_carries_the_ids_of_who_handed_it_out(worker: None) -> None:
    """Through the broker and back: request, turn, call and workspace, and the trace."""
    with collecting() as collected:
        with bound(request_id="r-1", turn_id="t-1", call_id="c-1", workspace_id="w-1", other="x"):
            with span("handing out"):
                trace_id = current_trace_id()
                look_around.apply_async(queue="observing")
            assert ran.wait(PATIENCE)
        collected.spans()
    (found,) = seen
    assert {
        name: found.get(name) for name in ("request_id", "turn_id", "call_id", "workspace_id")
    } == {
        "request_id": "r-1",
        "turn_id": "t-1",
        "call_id": "c-1",
        "workspace_id": "w-1",
    }
    assert "other" not in found
    assert found["task"] == "tests.look_around"
    assert found["trace"] == trace_id


def test_what_a_message_brings_is_taken_as_short_texts_only() -> None:
    look_around.apply(headers={HEADER: {"request_id": "x" * 1000, "evil": {"a": 1}}})
    assert len(seen[-1]["request_id"]) == 128
    look_around.apply(headers={HEADER: ["nonsense"]})
    assert "request_id" not in seen[-1]
    assert structlog.contextvars.get_contextvars() == {}


def test_a_collector_gets_spans_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter itself: protobuf to `/v1/traces` of the configured endpoint."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        with collecting(OTLPSpanExporter()):
            with span("hello"):
                pass
            provider = trace.get_tracer_provider()
            provider.force_flush()  # type: ignore[attr-defined]  # the SDK's
    finally:
        server.shutdown()
        server.server_close()
    path, body = got[0]
    assert path == "/v1/traces"
    sent = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert [one.name for one in sent] == ["hello"]
    assert settings.TRELLIS.otel_endpoint is None


_A_SPAN = """
import time
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry import trace
from config.telemetry.trace_export import begin
begin(OTLPSpanExporter(endpoint="{url}"))
trace.get_tracer("ours").start_span("the-last-one").end()
print(time.time())
"""


def _ended_after(url: str) -> float:
    """Seconds between a process's last word and its end."""
    done = subprocess.run(
        [sys.executable, "-c", _A_SPAN.format(url=url)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    return time.time() - float(done.stdout)


def test_a_collector_that_hangs_keeps_no_process_from_ending() -> None:
    """REL-1507: it takes the connection, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert _ended_after(f"http://127.0.0.1:{mute.getsockname()[1]}/v1/traces") < 5


def test_the_last_spans_of_a_process_leave_with_its_end() -> None:
    """REL-1507: a collector that answers gets them."""
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        _ended_after(f"http://127.0.0.1:{server.server_port}/v1/traces")
        server.shutdown()
    sent = b"".join(gzip.decompress(one) if one[:2] == b"\x1f\x8b" else one for one in bodies)
    assert b"the-last-one" in sent
