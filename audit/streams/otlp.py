"""A sink that posts OpenTelemetry logs (OTLP 1.x, protobuf). Loaded by who has such a stream: it brings 1.3 MB of types."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx2
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from audit.streams.events import StreamedEntry
from audit.streams.sinks import HTTP_BOUNDS, SinkReceipt
from workspaces import outbound
from workspaces.delivery.webhooks import post


class OtlpSink:
    """Posts log records to a collector's `/v1/logs`."""

    def __init__(self, *, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._client = outbound.client(bounds=HTTP_BOUNDS, headers=headers)

    async def send(self, events: Sequence[StreamedEntry]) -> SinkReceipt:
        body = otlp_request(events).SerializeToString()
        headers = {"content-type": "application/x-protobuf"}
        answer = await post(self._client, self._url, body, headers, reads_answer=True)
        return SinkReceipt(refused=_refused(answer))

    async def aclose(self) -> None:
        await self._client.aclose()


def otlp_request(events: Iterable[StreamedEntry]) -> ExportLogsServiceRequest:
    """The events as log records of one scope, each with its entry's fields as attributes."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.append(_attribute("service.name", "trellis"))
    scope = resource.scope_logs.add()
    scope.scope.name = "trellis.audit"
    now = time.time_ns()
    for event in events:
        is_trace = len(event.trace_id) == 32 and set(event.trace_id) <= set("0123456789abcdef")
        scope.log_records.append(
            LogRecord(
                time_unix_nano=int(event.at.timestamp() * 1_000_000) * 1_000,
                observed_time_unix_nano=now,
                severity_number=SeverityNumber.SEVERITY_NUMBER_WARN
                if event.is_warning
                else SeverityNumber.SEVERITY_NUMBER_INFO,
                severity_text="WARN" if event.is_warning else "INFO",
                event_name=f"trellis.audit.{event.action}",
                body=AnyValue(string_value=event.title),
                trace_id=bytes.fromhex(event.trace_id) if is_trace else b"",
                attributes=[
                    _attribute("log.record.uid", str(event.uid)),
                    _attribute("trellis.chain", str(event.chain_id)),
                    _attribute("trellis.seq", event.seq),
                    _attribute("trellis.hash", event.hash),
                    *(_attribute(f"trellis.{name}", value) for name, value in event.record.items()),
                ],
            )
        )
    return request


def _attribute(name: str, value: Any) -> KeyValue:
    if isinstance(value, bool):
        return KeyValue(key=name, value=AnyValue(bool_value=value))
    if isinstance(value, int):
        return KeyValue(key=name, value=AnyValue(int_value=value))
    if isinstance(value, float):
        return KeyValue(key=name, value=AnyValue(double_value=value))
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return KeyValue(key=name, value=AnyValue(string_value=text))


def _refused(answer: httpx2.Response) -> int:
    """How many records the collector refused although it took the batch; it must not be sent them again (OTLP, "Partial success")."""
    if not answer.content:
        return 0
    try:
        if "json" in answer.headers.get("content-type", ""):
            partial = json.loads(answer.content).get("partialSuccess") or {}
            return max(0, int(partial.get("rejectedLogRecords", 0)))
        response = ExportLogsServiceResponse.FromString(answer.content)
    except (DecodeError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return 0
    return max(0, int(response.partial_success.rejected_log_records))
