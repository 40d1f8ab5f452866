"""The page of one turn, for people who may see the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET

from audit import reports
from audit.filters import ENTRIES
from audit.reports.figures import spoken_time
from audit.views.parts import call_url, found_by
from audit.views.rows import shown_rows
from chat.services.turn_record import TurnRecord, WaterfallBar, read_turn
from chat.values import TurnStatus
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from django.utils.functional import Promise

    from audit.models import AuditEntry
    from workspaces.middleware import WorkspaceRequest

_STATUSES: Final[dict[str, tuple[Promise, str]]] = {
    TurnStatus.QUEUED: (_lazy("Queued"), "muted"),
    TurnStatus.RUNNING: (_lazy("Running"), "muted"),
    TurnStatus.WAITING_FOR_APPROVAL: (_lazy("Waiting for approval"), "warn"),
    TurnStatus.WAITING_FOR_INPUT: (_lazy("Waiting for an answer"), "warn"),
    TurnStatus.COMPLETED: (_lazy("Answered"), "ok"),
    TurnStatus.FAILED: (_lazy("Failed"), "bad"),
    TurnStatus.CANCELLED: (_lazy("Stopped"), "muted"),
    TurnStatus.INTERRUPTED: (_lazy("Interrupted"), "warn"),
}


@require_GET
@login_required
def turn_page(request: WorkspaceRequest, workspace_slug: str, turn_id: UUID) -> HttpResponse:
    """The question, the prompt, the model, where the time went, and what the log holds of it."""
    workspace = workspace_of(request)
    found = read_turn(workspace_id=workspace.pk, turn_id=turn_id, actor=request.actor)
    log_url = reverse("audit:entries", args=[workspace_slug])
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    firsts = _first_of_each_call(found.entries)
    context: dict[str, Any] = {
        "section": "audit",
        "audit_url": log_url,
        "found": found,
        "turn": found.turn,
        "status": _STATUSES.get(found.turn.status) if found.turn else None,
        "beside": [
            {
                "model": one.model or _("another model"),
                "url": reverse("chat:turn", args=[workspace_slug, one.pk]),
            }
            for one in found.beside
        ],
        "spans": _bars(found, log_url),
        "total": spoken_time(found.total_ms),
        "roles": {
            "system": _("Instructions"),
            "user": _("Question"),
            "assistant": _("Model"),
            "tool": _("Tool result"),
        },
        "in_log_url": found_by(log_url, turn=turn_id, show=ENTRIES),
        "columns": [
            {"label": label}
            for label in (_("When"), _("What"), _("Server"), _("Who"), _("Outcome"), _("Took"))
        ],
        "rows": shown_rows(firsts, rows, as_calls=True, now=timezone.now(), log_url=log_url),
    }
    return render(request, "chat/turn.html", context)


def _first_of_each_call(entries: Sequence[AuditEntry]) -> list[AuditEntry]:
    """Give one entry for each call, oldest first."""
    found: dict[UUID, AuditEntry] = {}
    for entry in reversed(entries):
        found.setdefault(entry.call_id or entry.pk, entry)
    return list(found.values())


def _bars(found: TurnRecord, log_url: str) -> list[dict[str, Any]]:
    whole = max(found.total_ms, 1)
    return [
        {
            "span": span,
            "label": _label(span),
            "took": spoken_time(span.length),
            "x": round(100 * span.start / whole, 2),
            "width": max(0.6, round(100 * span.length / whole, 2)),
            "url": call_url(log_url, span.call_id) if span.call_id else "",
        }
        for span in found.spans
    ]


def _label(span: WaterfallBar) -> str:
    if span.kind == "wait":
        return _("Waiting for approval: %(tool)s") % {"tool": span.label}
    return span.label or _("Model")
