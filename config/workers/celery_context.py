"""Tasks carry the ids of whoever handed them out: request, turn, call and workspace for log lines, the trace for spans.

They say when they were handed out, too, which tells how long they wait (`config.workers.queues`).

A task is the platform's own job, so it reaches every tenant's rows.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Final

import structlog
from celery.signals import before_task_publish, task_postrun, task_prerun
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import SpanKind

from config.workers.queues import HANDED_OUT
from workspaces.database.row_security import EVERYTHING, current_reach, set_reach
from workspaces.process.tracing import mark_failed

HEADER: Final = "trellis_context"
IDS: Final = ("request_id", "turn_id", "call_id", "workspace_id")
_tracer = trace.get_tracer("trellis.celery")
_running: dict[str, tuple[trace.Span, object]] = {}
_reaches: dict[str, str] = {}
"""How far the thread reached before its task: a test runs tasks in the middle of something else."""


@before_task_publish.connect
def _give(headers: dict[str, Any] | None = None, **_kwargs: Any) -> None:
    """Into the message: the time and ids only, and nothing of what was said."""
    if headers is None:
        return
    headers[HANDED_OUT] = time.time()
    known = structlog.contextvars.get_contextvars()
    carried: dict[str, str] = {name: str(known[name]) for name in IDS if name in known}
    inject(carried)
    if carried:
        headers[HEADER] = carried


@task_prerun.connect
def _begin(task_id: str = "", task: Any = None, **_kwargs: Any) -> None:
    carried = _carried(task)
    _reaches[task_id] = current_reach()
    set_reach(EVERYTHING)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        task=task.name,
        task_id=task_id,
        **{name: value for name, value in carried.items() if name in IDS},
    )
    span = _tracer.start_span(
        f"process {task.name}",
        context=extract(carried, context=otel_context.Context()),
        kind=SpanKind.CONSUMER,
        attributes={
            "messaging.system": "celery",
            "messaging.operation.name": "process",
            "messaging.message.id": task_id,
        },
    )
    if span.is_recording():
        token = otel_context.attach(trace.set_span_in_context(span))
        _running[task_id] = (span, token)


@task_postrun.connect
def _end(task_id: str = "", state: str | None = None, **_kwargs: Any) -> None:
    structlog.contextvars.clear_contextvars()
    set_reach(_reaches.pop(task_id, current_reach()))
    found = _running.pop(task_id, None)
    if found is not None:
        span, token = found
        if state not in {None, "SUCCESS"}:
            mark_failed(span, str(state))
        with contextlib.suppress(ValueError):
            otel_context.detach(token)  # type: ignore[arg-type]
        span.end()


def _carried(task: Any) -> dict[str, str]:
    """What the message brought; nothing of it is trusted to be anything but short texts."""
    headers = getattr(task.request, "headers", None) or {}
    found = headers.get(HEADER) or getattr(task.request, HEADER, None) or {}
    if not isinstance(found, dict):
        return {}
    return {str(name): str(value)[:128] for name, value in found.items()}
