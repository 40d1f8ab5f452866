"""Logs: one pipeline for structlog and the standard library, with redaction as its last step before rendering."""

from __future__ import annotations

import logging
import logging.config
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, MutableMapping
from importlib import import_module
from traceback import walk_tb
from typing import Any, Final, cast

from django.core.exceptions import SuspiciousOperation
from opentelemetry import trace

from workspaces.errors import NotFound, PermissionDenied
from workspaces.process.outages import TELL_SECONDS
from workspaces.process.unused_libraries import without

with without("rich", "twisted"):  # for logs in colours, and for those of Twisted itself
    import structlog

EventDict = MutableMapping[str, Any]
MOST_A_MINUTE: Final = 60
_MOST_REASONS: Final = 100
"""Why a connection failed, of which is known when they were told."""
_TALKATIVE: Final = re.compile(r"mcp\.|client$|django\.security\.\w+")
"""Loggers of the MCP SDK, whose sessions' is named "client", and Django's of requests that it does not read."""
_SEVERITY = ("DEBUG", "INFO", "WARNING", "ERROR")
_redact: Callable[[object, str, EventDict], EventDict] | None = None


def redact(logger: object, method: str, event: EventDict) -> EventDict:
    """Mask known secrets in a log event.

    Resolved at the first event and not at import, because logging is set up before Django's apps can be loaded.
    """
    global _redact
    if _redact is None:
        _redact = import_module("workspaces.redaction").redact_event
    return _redact(logger, method, event)


def add_trace(logger: object, method: str, event: EventDict) -> EventDict:
    """Name the trace that the line belongs to, if there is one."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
        event["span_id"] = f"{context.span_id:016x}"
    return event


class RateLimitFilter(logging.Filter):
    """Lets few lines a minute through of libraries that write one whenever a stranger, or their server, wants them to."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._counts: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written; the last one of a minute says that others are left out."""
        talkative = _TALKATIVE.match(record.name)
        if talkative is None:
            return True
        if record.exc_info and isinstance(record.exc_info[1], ValueError | SuspiciousOperation):
            # The traceback of what could not be read shows it. The line says what it was.
            record.exc_info = record.exc_text = None
        minute = int(record.created // 60)
        if minute != self._minute:
            self._minute = minute
            self._counts.clear()
        self._counts[talkative[0]] += 1
        count = self._counts[talkative[0]]
        if count == MOST_A_MINUTE:
            record.msg = f"{record.getMessage()} (further lines of this minute are left out)"
            record.args = ()
        return count <= MOST_A_MINUTE


class OncePerOutage(logging.Filter):
    """Of tries to reach PostgreSQL, Redis or a collector, lets a line for each reason in ten minutes through. Libraries write one for each."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written."""
        kind = _failed_try(record)
        if kind is None:
            return True
        if record.created < self._told.get(kind, -math.inf) + TELL_SECONDS:
            return False
        if len(self._told) >= _MOST_REASONS:
            self._told.clear()
        self._told[kind] = record.created
        return True


def _failed_try(record: logging.LogRecord) -> str | None:
    """Why a try to connect failed, without how long until the next one: that is another number each time."""
    text = str(record.msg)
    if record.name == "psycopg.pool":
        if text.startswith("error connecting"):
            return record.getMessage()
        return text if text.startswith("reconnection attempt") else None
    if record.name.startswith("opentelemetry.exporter."):
        reasons = record.args if isinstance(record.args, tuple) else ()
        return " ".join([text, *(str(one) for one in reasons if not isinstance(one, float))])
    if record.name == "celery.worker.consumer.consumer" and text.startswith("consumer: Cannot"):
        return text % (*cast("tuple[object, ...]", record.args)[:2], "")
    return None


class WithoutPlans(logging.Filter):
    """Drops what Celery says of its next versions, such as at each loss of Redis. Tasks go on then, as they should."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written."""
        return "CPendingDeprecationWarning" not in record.getMessage()


_UNKNOWN_TASK: Final = "Received unregistered task"
_UNREADABLE: Final = ("Received and deleted", "Received invalid task", "Can't decode message")


class WithoutContents(logging.Filter):
    """Names a task that a worker does not know or cannot read. Celery would write all that the message holds."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell that the line is written, after its values are taken out of it."""
        text = str(record.msg)
        reason = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if text.startswith(_UNKNOWN_TASK):
            record.msg = "This worker does not know the task %s and drops it. Is its version older than the server's?"
            record.args = (reason,)
        elif text.startswith(_UNREADABLE):
            record.msg = "This worker cannot read a message of its queue and drops it (%s)."
            record.args = (type(reason).__name__ if isinstance(reason, Exception) else "no task",)
        else:
            return True
        record.exc_info = record.exc_text = None
        return True


_STREAMS: Final = frozenset({"sync_streaming_content_wrapper", "async_streaming_content_wrapper"})
"""What the request log wraps around an answer that streams. It writes a line if that ends early, and raises on."""


class OncePerFailure(logging.Filter):
    """Drops Django's and Daphne's line of what the request log has already, with the same traceback.

    Of Celery's line, it drops the traceback that stands a second time among its values.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is written."""
        if isinstance(data := getattr(record, "data", None), dict):
            vars(record)["data"] = {name: data[name] for name in data if name != "traceback"}
        request = getattr(record, "request", None)
        if hasattr(request, "_raised_exception") or hasattr(request, "is_logged"):
            return False
        steps = walk_tb(record.exc_info[2]) if record.exc_info else ()
        return not any(frame.f_code.co_name in _STREAMS for frame, _line in steps)


def name_request(logger: object, method: str, event: EventDict) -> EventDict:
    """Name a request by its path alone. Django hands the request itself on where it fails, and that shows its query."""
    request: Any = event.get("request")
    if hasattr(request, "get_full_path"):
        event["request"] = f"{request.method} {request.path}"
    return event


def name_refusal(logger: object, method: str, event: EventDict) -> EventDict:
    """Write a line without a traceback of a download whose reader lost the right to it. There is nothing to mend."""
    reason = sys.exception()
    if event.get("event") == "streaming_failed" and isinstance(reason, NotFound | PermissionDenied):
        event.pop("exc_info", None)
        event.update(level="info", reason=type(reason).__name__)
    return event


_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.contextvars.merge_contextvars,
    add_trace,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.PositionalArgumentsFormatter(),
]
_OURS: Final[list[structlog.typing.Processor]] = [
    structlog.stdlib.filter_by_level,
    *_SHARED,
    name_refusal,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]
"""Loggers keep this list from their first line on, so it stays the same one."""


def configure_logging(*, level: str, as_json: bool) -> None:
    """Send everything to stderr: one JSON object a line, or text for people."""
    # plain_traceback: the default formatter prints local variables, and with them secrets.
    final: list[structlog.typing.Processor] = (
        [
            name_request,
            structlog.processors.format_exc_info,
            redact,
            structlog.processors.JSONRenderer(),
        ]
        if as_json
        else [
            name_request,
            structlog.processors.format_exc_info,
            redact,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    )
    # People at a terminal want to see what is wrong, machines want to see every request.
    routine = level if as_json else max(level, "WARNING", key=_SEVERITY.index)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "trellis": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        *final,
                    ],
                    "foreign_pre_chain": [*_SHARED, structlog.stdlib.ExtraAdder()],
                }
            },
            "filters": {
                "sparing": {"()": RateLimitFilter},
                "once_per_failure": {"()": OncePerFailure},
                "once_per_outage": {"()": OncePerOutage},
                "without_contents": {"()": WithoutContents},
                "without_plans": {"()": WithoutPlans},
            },
            "handlers": {
                "stderr": {
                    "class": "logging.StreamHandler",
                    "formatter": "trellis",
                    "filters": ["sparing", "once_per_outage"],
                }
            },
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                # The request log says so too; a foreign Host is not worth a traceback.
                "django.security.DisallowedHost": {"level": "CRITICAL"},
                # The request log below has every status already. What fails outside of it, only this one has.
                "django.request": {"level": "ERROR", "filters": ["once_per_failure"]},
                "django.channels.server": {"level": "WARNING"},
                "daphne": {"level": "WARNING"},
                "daphne.server": {"filters": ["once_per_failure"]},
                "django_structlog": {"level": routine},
                "celery": {"level": routine},
                "celery.app.trace": {"filters": ["once_per_failure"]},
                "celery.worker.consumer.consumer": {"filters": ["without_contents"]},
                "py.warnings": {"filters": ["without_plans"]},
                "httpx2": {"level": "WARNING"},
                "httpcore2": {"level": "WARNING"},  # else it shows the headers of every answer
                "mcp": {"level": "WARNING"},
                "fontTools": {
                    "level": "WARNING"
                },  # else each report as a PDF file is dozens of lines
                # What callers put into headers for tracing is nothing to mend here, and no text for the log.
                "opentelemetry.baggage": {"level": "CRITICAL"},
                "opentelemetry.trace.propagation": {"level": "CRITICAL"},
                "opentelemetry.trace.span": {"level": "CRITICAL"},
                "client": {"level": "WARNING"},
                "asyncio": {"level": "WARNING"},
            },
        }
    )
    structlog.configure(
        processors=_OURS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
