"""The trace of a server as a file, for pages and the REST interface alike."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.utils import timezone

from mcp_servers.gate.access import as_of_now
from mcp_servers.registry.trace import download as downloads
from mcp_servers.registry.trace import reading
from workspaces.errors import PermissionDenied

if TYPE_CHECKING:
    from django.http import HttpRequest

    from mcp_servers.models import McpServer
    from mcp_servers.registry.trace.reading import TraceFilter
    from workspaces.actors import Actor


def give_trace(
    request: HttpRequest, server: McpServer, *, slug: str, wanted: TraceFilter, actor: Actor
) -> StreamingHttpResponse:
    """Give what the filters leave, as JSON lines. That it was taken is recorded first.

    Raises:
        PermissionDenied: the actor may not see the trace.
        AuditUnavailable: it could not be recorded; then nothing is given.
    """
    rows = reading.matching(reading.messages_of(server, actor=actor), wanted)
    downloads.record_download(server, wanted=wanted, actor=actor)
    # A synchronous iterator under an asynchronous server would be read whole before the first byte.
    is_async = isinstance(request, ASGIRequest)
    reader = partial(_reader, actor, server)
    stream = downloads.stream_async if is_async else downloads.stream
    response = StreamingHttpResponse(stream(rows, reader), content_type=downloads.MEDIA_TYPE)
    name = f"trellis-trace-{slug}-{timezone.now():%Y%m%dT%H%M%SZ}.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _reader(actor: Actor, server: McpServer) -> Actor:
    """A file may take long. Whoever may not see the trace any more gets no more of it, and their download fails."""
    today = as_of_now(actor)
    if not reading.may_see_trace(today, server):
        raise PermissionDenied
    return today
