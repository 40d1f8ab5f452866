"""The trace of one server: what goes over its connections, live."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.models import TraceMessage
from mcp_servers.pages.trace_files import give_trace
from mcp_servers.pages.views.common import server_of, servers_url
from mcp_servers.registry.trace import reading
from mcp_servers.registry.trace.reading import PAGE, TraceFilter
from workspaces.errors import InvalidInput
from workspaces.words.text_values import read_moment

if TYPE_CHECKING:
    from mcp_servers.models import McpServer
    from workspaces.middleware import WorkspaceRequest

_OVERLAP: Final = timedelta(seconds=10)
"""Processes store at their own pace, so a page asks again for the last moments; it knows what it has."""


@require_GET
@login_required
def trace(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """The messages, newest first; an htmx request gets older ones alone."""
    row = server_of(request, server_id)
    wanted = TraceFilter.read(request.GET.dict())
    rows = reading.matching(reading.messages_of(row, actor=request.actor), wanted)
    before = request.GET.get("before")
    if before:
        rows = rows.filter(pk__lt=_uuid(before))
    found = list(rows[: PAGE + 1])
    context: dict[str, Any] = {
        **_context(request, row),
        "rows": found[:PAGE],
        "older_url": _older(found, wanted),
        "wanted": wanted,
        "query": urlencode(wanted.as_query()),
        "now": timezone.now().isoformat(),
        "directions": reading.DIRECTIONS,
        "methods": sorted({*reading.methods_of(row), *filter(None, [wanted.method])}),
    }
    template = "mcp_servers/_trace_rows.html" if before else "mcp_servers/trace.html"
    return render(request, template, context)


@require_GET
@login_required
def trace_news(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """The messages that were stored since the page last asked, with some that it has already."""
    row = server_of(request, server_id)
    wanted = TraceFilter.read(request.GET.dict())
    since = read_moment(request.GET.get("since", "").replace(" ", "+"))
    if since is None:
        raise InvalidInput(fields={"since": [_("This is not a valid time.")]})
    now = timezone.now()
    rows = reading.matching(reading.messages_of(row, actor=request.actor), wanted)
    found = rows.filter(created_at__gte=since - _OVERLAP)[:PAGE]
    context = {**_context(request, row), "rows": list(found), "now": now.isoformat()}
    return render(request, "mcp_servers/_trace_rows.html", context)


@require_GET
@login_required
def message(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, message_id: UUID
) -> HttpResponse:
    """One message as everybody may see it who sees the trace."""
    row = server_of(request, server_id)
    return _message(request, row, _fetch(request, row, message_id))


@require_POST
@login_required
def message_body(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, message_id: UUID
) -> HttpResponse:
    """One message with what people put into it; reading somebody else's is an entry of the log."""
    row = server_of(request, server_id)
    found = _fetch(request, row, message_id)
    return _message(request, row, found, body=reading.open_body(found, actor=request.actor))


@require_GET
@login_required
def download(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID
) -> StreamingHttpResponse:
    """What the filters show, as JSON lines; that it was taken is recorded first."""
    row = server_of(request, server_id)
    wanted = TraceFilter.read(request.GET.dict())
    return give_trace(request, row, slug=workspace_slug, wanted=wanted, actor=request.actor)


def _fetch(request: WorkspaceRequest, row: McpServer, message_id: UUID) -> TraceMessage:
    rows = reading.messages_of(row, actor=request.actor)
    return rows.select_related("server").fetch(message_id)


def _message(
    request: WorkspaceRequest, row: McpServer, found: TraceMessage, **body: Any
) -> HttpResponse:
    shown = body["body"] if body else found.outline
    context = {
        **_context(request, row),
        "message": found,
        "partners": reading.partners_of(found),
        "is_body": bool(body),
        "can_open": reading.may_open_body(request.actor, found) and bool(found.body),
        "is_own": found.user_id is not None and found.user_id == request.actor.user_id,
        "content": shown,
        "text": json.dumps(shown, indent=2, ensure_ascii=False) if shown is not None else "",
    }
    return render(request, "mcp_servers/_trace_message.html", context)


def _context(request: WorkspaceRequest, row: McpServer) -> dict[str, Any]:
    slug = request.workspace.slug if request.workspace is not None else ""
    return {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": row,
        "trace_url": reverse("mcp_servers:trace", args=[slug, row.pk]),
    }


def _older(found: list[TraceMessage], wanted: TraceFilter) -> str:
    if len(found) <= PAGE:
        return ""
    return urlencode({**wanted.as_query(), "before": str(found[PAGE - 1].pk)})


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise InvalidInput(fields={"before": [_("This is not the id of a message.")]}) from error
