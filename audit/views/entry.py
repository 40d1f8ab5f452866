"""One entry with everything of its call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_noop as _
from django.views.decorators.http import require_GET

from audit import reports
from audit.actions import Action, layer_name, outcome_in_words
from audit.bodies import read_body
from audit.filters import ENTRIES
from audit.models import AuditEntry, AuditSeal, PendingSeal
from audit.reports.filter_words import source_in_words
from audit.services import EntryDraft, record
from audit.storable import mapping_of
from audit.views.parts import around, call_url, described, found_by
from workspaces.pages.parts import workspace_of
from workspaces.secrets import SecretUnreadable
from workspaces.words.columns import column_in_words, value_in_words
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBody:
    """Arguments or result, as an auditor sees them."""

    title: str
    text: str
    size: int | None
    commitment: str
    is_unreadable: bool
    """The key that it was kept under is gone, so this is what the entry itself shows of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedField:
    """One field of a changed setting; secrets are masked since before they were recorded."""

    column: str
    field: str
    """What people call the column."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryField:
    """One thing that an entry says."""

    label: str
    value: object
    url: str = ""
    """All entries that say the same."""


_FILTERS: Final = {
    "Actor": "label",
    "Address": "ip",
    "API token": "token",
    "On behalf of": "behalf",
    "Server": "server",
    "Tool": "tool",
    "Definition hash": "definition",
    "Credential": "credential",
    "Rule": "rule",
    "Bud": "bud",
    "Model": "model",
    "Conversation": "conversation",
    "Turn": "turn",
    "Call": "call",
    "Request": "request",
    "Trace": "trace",
    "Entry": "entry",
}
"""Label → the filter that finds the same."""
_IN_DETAILS: Final = {"entry": "entry", "call": "call"}


@require_GET
@login_required
def entry_detail(request: WorkspaceRequest, workspace_slug: str, entry_id: UUID) -> HttpResponse:
    """One entry with everything of its call. Showing somebody else's bodies is itself an entry."""
    workspace = workspace_of(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    entry = rows.fetch(entry_id)
    related = reports.related_to(entry, rows)
    can_see_bodies = reports.may_see_bodies(entry, actor=request.actor)
    bodies = bodies_of(entry) if can_see_bodies else []
    if bodies and entry.actor_id != request.actor.user_id:
        record_opened(entry, request)
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context = {
        "section": "audit",
        "audit_url": audit_url,
        "around_url": around(audit_url, [entry]),
        "call_url": call_url(audit_url, entry.call_id) if entry.call_id else "",
        "back_url": None,
        "entry": described(entry),
        "facts": facts_of(entry, log_url=audit_url),
        "can_see_bodies": can_see_bodies,
        "bodies": bodies,
        "changes": changes_of(entry),
        "related": [described(other) for other in related.entries],
        "has_more_related": related.has_more,
        "whole_call_url": found_by(audit_url, call=entry.call_id, show=ENTRIES),
    }
    return render(request, "audit/entry_detail.html", context)


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


def bodies_of(entry: AuditEntry) -> list[EntryBody]:
    """Give arguments and result: whole where they are kept, else what the entry itself shows of them."""
    try:
        whole, is_unreadable = read_body(entry), False
    except SecretUnreadable:
        whole, is_unreadable = None, True
    found = []
    for title, name in ((_("Arguments"), "arguments"), (_("Result"), "result")):
        size = getattr(entry, f"{name}_size")
        if size is not None:
            kept = getattr(whole, name) if whole else None
            text = _pretty(kept if kept is not None else getattr(entry, f"{name}_preview"))
            commitment = getattr(entry, f"{name}_commitment")
            found.append(
                EntryBody(
                    title=title,
                    text=text,
                    size=size,
                    commitment=commitment,
                    is_unreadable=is_unreadable,
                )
            )
    return found


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text  # it was cut, or it is no JSON


def changes_of(entry: AuditEntry) -> list[ChangedField]:
    if entry.action != Action.CONFIG_CHANGED:
        return []
    details = mapping_of(entry.details)
    before, after = (mapping_of(details.get(name)) for name in ("before", "after"))
    kind = str(details.get("kind", ""))
    found = [
        ChangedField(
            column=name,
            field=capfirst(column_in_words(kind, name)),
            before=value_in_words(kind, name, before.get(name)),
            after=value_in_words(kind, name, after.get(name)),
        )
        for name in {*before, *after}
    ]
    return sorted(found, key=lambda change: change.field)


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def facts_of(entry: AuditEntry, *, log_url: str = "") -> list[tuple[str, list[EntryField]]]:
    """Everything that is no body, grouped; what is empty is left out.

    Args:
        log_url: of the log, for those who may see it: each value leads to the entries with the same.
    """
    return [
        (
            heading,
            [
                EntryField(
                    label=gettext(label), value=value, url=_same(entry, label, value, log_url)
                )
                for label, value in rows.items()
                if value not in (None, "")
            ],
        )
        for heading, rows in _groups_of(entry)
    ]


def _named(value: object) -> dict[str, str]:
    """Say what a column holds; also what Trellis never puts there, since somebody else did."""
    if value is not None and not isinstance(value, dict):
        return {_("Not as Trellis writes it"): _shown(value)}
    return {name: _shown(one) for name, one in mapping_of(value).items()}


def _groups_of(entry: AuditEntry) -> list[tuple[str, dict[str, object]]]:
    """Heading, and what stands under it by its label."""
    details = _named(entry.details)
    for name in ("before", "after"):
        details.pop(name, None)
    seal = AuditSeal.objects.filter(pk=entry.pk).first()
    return [
        (
            _("Who"),
            {
                _("Actor"): entry.actor_label,
                _("Role"): entry.actor_role,
                _("Through"): str(source_in_words(entry.source)),
                _("Address"): entry.ip_address,
                _("API token"): entry.token_id,
                _("MCP client"): details.pop("client", ""),
                _("On behalf of"): entry.on_behalf_of,
                _("Signed in by"): entry.sign_in,
            },
        ),
        (
            _("What was called"),
            {
                _("Server"): entry.server_name,
                _("Tool"): entry.tool_name,
                _("Transport"): entry.transport,
                _("Protocol revision"): entry.protocol_revision,
                _("Definition hash"): entry.definition_hash,
                _("Credential"): entry.credential_id,
                _("Annotations"): _shown(entry.annotations) if entry.annotations else None,
            },
        ),
        (
            _("How it ended"),
            {
                _("Outcome"): gettext(outcome_in_words(entry.outcome)),
                _("Refused by"): gettext(layer_name(entry.refused_by)),
                _("Rule"): entry.rule,
                _("Took"): f"{whole(entry.duration_ms)} ms"
                if entry.duration_ms is not None
                else None,
                _("Waited in line"): f"{whole(entry.queue_ms)} ms"
                if entry.queue_ms is not None
                else None,
                _("Arguments"): _size(entry.arguments_size),
                _("Result"): _size(entry.result_size),
                _("Masked"): _shown(entry.redactions) if entry.redactions else None,
            },
        ),
        (_("Approval"), dict(_named(entry.approval))),
        (_("Details"), dict(details)),
        (
            _("Where it belongs"),
            {
                _("Bud"): entry.bud_name,
                _("Model"): entry.model,
                _("Conversation"): entry.conversation_id,
                _("Turn"): entry.turn_id,
                _("Call"): entry.call_id,
                _("Request"): entry.request_id,
                _("Trace"): entry.trace_id,
                _("Entry"): entry.pk,
                _("Place in the log"): seal.seq if seal else _why_unsealed(entry),
                _("Seal"): seal.hash if seal else None,
            },
        ),
    ]


def _same(entry: AuditEntry, label: str, value: object, log_url: str) -> str:
    if not log_url:
        return ""
    if label == "Actor" and entry.actor_id:
        return found_by(log_url, user=entry.actor_id)
    name = _FILTERS.get(label)
    if name is None and label in _IN_DETAILS:
        try:
            UUID(str(value))
        except ValueError:
            return ""
        name = _IN_DETAILS[label]
    return found_by(log_url, **{name: value}) if name else ""


def _why_unsealed(entry: AuditEntry) -> str:
    if PendingSeal.objects.filter(entry_id=entry.pk).exists():
        return gettext("not sealed yet")
    return gettext("not sealed: it lost its seal, or Trellis did not write it")


def _size(size: int | None) -> str | None:
    return (
        None
        if size is None
        else ngettext("%(size)s byte", "%(size)s bytes", size) % {"size": whole(size)}
    )
