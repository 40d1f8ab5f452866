"""One call from top to bottom: who asked, what was sent, what allowed it, what came back, how it is sealed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET

from audit import reports
from audit.actions import REFUSALS, Action
from audit.models import AuditEntry, AuditSeal
from audit.reports import CallRow, CallState
from audit.reports.figures import spoken_time
from audit.reports.providers import call_actions_of, rule_in_words
from audit.storable import mapping_of
from audit.views.entry import EntryBody, EntryField, bodies_of, facts_of, record_opened
from audit.views.parts import around, described, found_by
from audit.views.rows import outcome_of, title_of_call
from audit.views.words import layer_in_words
from workspaces.actors import Source
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """One thing that decided whether the call was sent."""

    title: str | Promise
    who: str
    at: datetime
    reason: str | Promise = ""
    rule: str = ""
    rule_text: str = ""
    """What the rule says, as the approval card put it."""


_DECIDING = frozenset(
    {
        Action.APPROVAL_REQUESTED.value,
        Action.APPROVAL_GRANTED.value,
        Action.APPROVAL_REFUSED.value,
        Action.APPROVAL_EXPIRED.value,
        *REFUSALS,
    }
)
_CAME = {
    Source.CHAT.value: _lazy("in the chat"),
    Source.WEB.value: _lazy("on a page"),
    Source.API.value: _lazy("over REST"),
    Source.ADMIN.value: _lazy("in the admin"),
    Source.GATEWAY.value: _lazy("through the gateway"),
    Source.TASK.value: _lazy("in the background"),
    Source.COMMAND.value: _lazy("in the terminal"),
}
_FOLDED = ("Who", "What was called", "How it ended", "Where it belongs", "Details")


@require_GET
@login_required
def call_page(request: WorkspaceRequest, workspace_slug: str, call_id: UUID) -> HttpResponse:
    """One call. Showing what somebody else's call sent is itself an entry."""
    workspace = workspace_of(request)
    row = reports.call_of(workspace.pk, call_id, actor=request.actor, now=timezone.now())
    sent, received, is_kept_from = bodies_for(row, request.actor)
    if (sent or received) and row.about.actor_id != request.actor.user_id:
        record_opened(row.about, request)
    audit_url = reverse("audit:entries", args=[workspace_slug])
    about = described(row.about)
    outcome, tone = outcome_of(row)
    end = row.end
    rule = next((one.rule for one in reversed(row.entries) if one.rule), "")
    context: dict[str, Any] = {
        "section": "audit",
        "audit_url": audit_url,
        "entry": about,
        "title": title_of_call(row.entries),
        "outcome": outcome,
        "tone": tone,
        "reason": row.reason or (layer_in_words(end.refused_by) if end else ""),
        "began_at": row.first.created_at,
        "took": "" if row.duration_ms is None else spoken_time(row.duration_ms),
        "was_sent": any(one.action in _SENDING for one in row.entries),
        "is_open": row.state in (CallState.RUNNING, CallState.WAITING),
        "sent": sent,
        "received": received,
        "can_see_bodies": not is_kept_from,
        "permits": _permits(row.entries),
        "rule": rule,
        "rule_text": rule_in_words(rule),
        "came": _CAME.get(about.source, about.source),
        "entries": _with_places(row.entries),
        "folded": _technical(row, audit_url),
        "around_url": around(audit_url, row.entries),
        "alone_url": found_by(audit_url, call=call_id, show="entries"),
        "place": described(next((one for one in row.entries if one.turn_id), about)),
        "turn_url": turn_url(row.entries, workspace_slug),
        "actions": call_actions_of(row.about, request.user, request.actor),
        "same_tool_url": found_by(audit_url, tool=about.tool_name, server=about.server_name)
        if about.tool_name
        else "",
    }
    return render(request, "audit/call.html", context)


_SENDING = frozenset(
    {
        Action.TOOL_CALL_REQUESTED.value,
        Action.RESOURCE_READ_REQUESTED.value,
        Action.PROMPT_GET_REQUESTED.value,
    }
)


def bodies_for(row: CallRow, actor: Actor) -> tuple[EntryBody | None, EntryBody | None, bool]:
    """Give what was sent and what came back, and whether the actor may not read them."""
    if not reports.may_see_bodies(row.about, actor=actor):
        return None, None, True
    found: dict[str, EntryBody] = {}
    # The newest that has one: a person may have changed the arguments before they approved.
    for entry in reversed(row.entries):
        if entry.arguments_size is not None or entry.result_size is not None:
            for body in bodies_of(entry):
                found.setdefault(body.title, body)
    return found.get("Arguments"), found.get("Result"), False


def turn_url(entries: Iterable[AuditEntry], workspace_slug: str) -> str:
    """Give the page of the turn that a call belongs to; nothing for what belongs to none."""
    found = next((one.turn_id for one in entries if one.turn_id), None)
    return reverse("chat:turn", args=[workspace_slug, found]) if found else ""


def _permits(entries: Sequence[AuditEntry]) -> list[CallDecision]:
    found = []
    for entry in entries:
        if entry.action in _DECIDING:
            details = {**mapping_of(entry.details), **mapping_of(entry.approval)}
            reason = next((details[name] for name in ("note", "reason") if details.get(name)), "")
            found.append(
                CallDecision(
                    title=getattr(described(entry), "action_label", entry.action),
                    who=entry.actor_label,
                    at=entry.created_at,
                    reason=str(reason) if reason else layer_in_words(entry.refused_by),
                    rule=entry.rule,
                    rule_text=rule_in_words(entry.rule),
                )
            )
    return found


def _with_places(entries: Sequence[AuditEntry]) -> list[tuple[AuditEntry, AuditSeal | None]]:
    seals = AuditSeal.objects.in_bulk([entry.pk for entry in entries])
    return [(described(entry), seals.get(entry.pk)) for entry in entries]


def _technical(row: CallRow, audit_url: str) -> list[tuple[str, list[EntryField]]]:
    """Everything else that the entries say, of the one that knows most."""
    own_facts = dict(facts_of(row.end or row.about, log_url=audit_url))
    first = dict(facts_of(row.about, log_url=audit_url))
    groups = [(heading, own_facts.get(heading) or first.get(heading) or []) for heading in _FOLDED]
    return [(_(heading), facts) for heading, facts in groups if facts]
