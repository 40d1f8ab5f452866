"""The pages of the log: the list with its numbers, one entry, and the log as a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from audit import exports, reports
from audit.actions import SENTENCES, TITLES, Action, Outcome
from audit.filters import RANGES, REFUSED, EntryFilter, read_filter
from audit.models import AuditEntry
from audit.services import EntryDraft, record
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

_OUTCOME_LABELS = {
    Outcome.OK: "Succeeded",
    Outcome.TOOL_ERROR: "The tool said it failed",
    Outcome.TRANSPORT_ERROR: "No connection",
    Outcome.TIMEOUT: "Timeout",
    Outcome.CANCELLED: "Cancelled",
    Outcome.OUTCOME_UNKNOWN: "Outcome unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Arguments or result, as an auditor sees them."""

    title: str
    text: str
    size: int | None
    commitment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a changed setting; secrets are masked since before they were recorded."""

    field: str
    before: str
    after: str


@require_GET
@login_required
def entries(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The log of a workspace, filtered, with its numbers; an htmx request gets the entries alone."""
    workspace = _workspace(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    found = reports.matching(rows, wanted)
    page = reports.page_of(
        found, older_than=_id(request.GET.get("before")), newer_than=_id(request.GET.get("after"))
    )
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context: dict[str, Any] = {
        "section": "audit",
        "audit_url": audit_url,
        "filters_active": wanted.is_narrowed,
        "entries": [_described(entry) for entry in page.entries],
        "newer_url": _page_url(audit_url, wanted, "after", page.newer_than),
        "older_url": _page_url(audit_url, wanted, "before", page.older_than),
    }
    if getattr(request, "htmx", False):
        return render(request, "audit/_entries.html", context)
    can_export = has_permission(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    context |= _filter_context(wanted, rows)
    context |= {
        "can_export": can_export,
        "export_formats": _export_formats(workspace_slug, wanted) if can_export else [],
        "chart": _chart(found, wanted, now),
        "totals": reports.totals_of(found),
    }
    return render(request, "audit/entry_list.html", context)


@require_GET
@login_required
def entry_detail(request: WorkspaceRequest, workspace_slug: str, entry_id: UUID) -> HttpResponse:
    """One entry with everything of its call. Showing somebody else's bodies is itself an entry."""
    workspace = _workspace(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    entry = rows.fetch(entry_id)
    related = reports.related_to(entry, rows)
    can_see_bodies = reports.may_see_bodies(entry, actor=request.actor)
    bodies = _bodies(entry) if can_see_bodies else []
    if bodies and entry.actor_id != request.actor.user_id:
        record_opened(entry, request)
    context = {
        "section": "audit",
        "audit_url": reverse("audit:entries", args=[workspace_slug]),
        "back_url": None,
        "entry": _described(entry),
        "facts": _facts(entry),
        "can_see_bodies": can_see_bodies,
        "bodies": bodies,
        "changes": _changes(entry),
        "related": [_described(other) for other in related],
    }
    return render(request, "audit/entry_detail.html", context)


@require_GET
@login_required
def export(request: WorkspaceRequest, workspace_slug: str, extension: str) -> StreamingHttpResponse:
    """The filtered log as a file; that it was taken is recorded first."""
    workspace = _workspace(request)
    if extension not in exports.FORMATS:
        raise Http404
    _, media_type, encode = exports.FORMATS[extension]
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    exports.record_export(
        actor=request.actor, workspace_id=workspace.pk, format_name=extension, wanted=wanted
    )
    found = reports.matching(rows, wanted).filter(created_at__lte=now)
    # A synchronous iterator under an asynchronous server would be read whole before the first byte.
    is_async = isinstance(request, ASGIRequest)
    pieces = exports.stream_async(found, encode) if is_async else exports.stream(found, encode)
    response = StreamingHttpResponse(pieces, content_type=media_type)
    name = f"trellis-audit-{workspace_slug}-{now:%Y%m%dT%H%M%SZ}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def record_opened(entry: AuditEntry, request: WorkspaceRequest) -> None:
    """Record that bodies were read.

    Raises:
        AuditUnavailable: it could not be written; then they are not shown.
    """
    record(
        EntryDraft(
            action=Action.BODY_OPENED,
            actor=request.actor,
            workspace_id=entry.workspace_id,
            details={"entry": str(entry.pk), "call": str(entry.call_id or "")},
        )
    )


def _workspace(request: WorkspaceRequest) -> Workspace:
    if request.workspace is None:
        raise Http404
    return request.workspace


def _id(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _page_url(audit_url: str, wanted: EntryFilter, name: str, entry_id: UUID | None) -> str | None:
    if entry_id is None:
        return None
    query = "&".join(filter(None, [wanted.as_query(), urlencode({name: str(entry_id)})]))
    return f"{audit_url}?{query}"


def _described(entry: AuditEntry) -> AuditEntry:
    """Add the words for people, which the templates read."""
    described: Any = entry
    described.sentence = SENTENCES.get(Action(entry.action), "")
    described.action_label = TITLES[Action(entry.action)]
    return entry


def _filter_context(wanted: EntryFilter, rows: Any) -> dict[str, Any]:
    choices = reports.choices_of(reports.matching(rows, EntryFilter(since=wanted.since)))
    return {
        "query": wanted.as_query(),
        "filters": {**wanted.typed, "range": wanted.range},
        "filter_errors": wanted.errors,
        "range_choices": [(value, label) for value, (label, _) in RANGES.items()],
        "action_choices": [(action.value, TITLES[action]) for action in Action],
        "outcome_choices": [
            *((outcome.value, label) for outcome, label in _OUTCOME_LABELS.items()),
            (REFUSED, "Refused"),
        ],
        "server_choices": choices.servers,
        "tool_choices": choices.tools,
        "user_choices": choices.users,
    }


def _export_formats(workspace_slug: str, wanted: EntryFilter) -> list[dict[str, str]]:
    formats = []
    for extension, (label, _, _) in exports.FORMATS.items():
        url = reverse("audit:export", args=[workspace_slug, extension])
        query = wanted.as_query()
        formats.append({"label": label, "url": f"{url}?{query}" if query else url})
    return formats


def _chart(found: Any, wanted: EntryFilter, now: datetime) -> dict[str, Any] | None:
    chart = reports.chart_of(found, since=wanted.since, until=wanted.until or now)
    return chart.as_json() if chart else None


def _bodies(entry: AuditEntry) -> list[Body]:
    found = []
    for title, name in (("Arguments", "arguments"), ("Result", "result")):
        size = getattr(entry, f"{name}_size")
        if size is not None:
            text = _pretty(getattr(entry, f"{name}_preview"))
            commitment = getattr(entry, f"{name}_commitment")
            found.append(Body(title=title, text=text, size=size, commitment=commitment))
    return found


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text  # it was cut, or it is no JSON


def _changes(entry: AuditEntry) -> list[Change]:
    if entry.action != Action.CONFIG_CHANGED:
        return []
    before, after = (_mapping(entry.details.get(name)) for name in ("before", "after"))
    names = sorted({*before, *after})
    return [
        Change(field=name, before=_shown(before.get(name)), after=_shown(after.get(name)))
        for name in names
    ]


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _facts(entry: AuditEntry) -> list[tuple[str, list[tuple[str, object]]]]:
    """Everything that is no body, grouped; what is empty is left out."""
    details = {
        name: _shown(value)
        for name, value in (entry.details or {}).items()
        if name not in {"before", "after"}
    }
    approval = {name: _shown(value) for name, value in (entry.approval or {}).items()}
    groups: list[tuple[str, dict[str, object]]] = [
        (
            "Who",
            {
                "Actor": entry.actor_label,
                "Role": entry.actor_role,
                "Through": entry.source,
                "Address": entry.ip_address,
                "API token": entry.token_id,
            },
        ),
        (
            "What was called",
            {
                "Server": entry.server_name,
                "Tool": entry.tool_name,
                "Transport": entry.transport,
                "Protocol revision": entry.protocol_revision,
                "Definition hash": entry.definition_hash,
                "Annotations": _shown(entry.annotations) if entry.annotations else None,
            },
        ),
        (
            "How it ended",
            {
                "Outcome": entry.outcome,
                "Refused by": entry.refused_by,
                "Rule": entry.rule,
                "Took": f"{entry.duration_ms} ms" if entry.duration_ms is not None else None,
                "Waited in line": f"{entry.queue_ms} ms" if entry.queue_ms is not None else None,
                "Arguments": _size(entry.arguments_size),
                "Result": _size(entry.result_size),
            },
        ),
        ("Approval", dict(approval)),
        ("Details", dict(details)),
        (
            "Where it belongs",
            {
                "Bud": entry.bud_name,
                "Model": entry.model,
                "Conversation": entry.conversation_id,
                "Turn": entry.turn_id,
                "Call": entry.call_id,
                "Request": entry.request_id,
                "Trace": entry.trace_id,
                "Entry": entry.pk,
            },
        ),
    ]
    return [
        (heading, [(label, value) for label, value in rows.items() if value not in (None, "")])
        for heading, rows in groups
    ]


def _size(size: int | None) -> str | None:
    return None if size is None else f"{size} bytes"
