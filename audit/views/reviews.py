"""Pages of what people keep: saved views, schedules, sign-offs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from audit import exports
from audit.filters import ENTRIES
from audit.models import ReportSchedule, SavedView, SignOff
from audit.reviews import previews, saved_views, scheduled_exports, schedules, signing
from audit.reviews.previews import Preview
from audit.reviews.stored_filters import values_of
from audit.views.header import header_of
from audit.views.header import saved_views as saved_views_of
from audit.views.parts import workspace_of
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.formats import whole
from workspaces.models import User
from workspaces.roles import Permission, require
from workspaces.row_pages import page_in_address, ways_from
from workspaces.text_values import read_moment

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_EDIT = "edit"
"""In the address of the schedules' page: whose form is open."""
_ROUTES = {SavedView.Page.LOG.value: "audit:entries", SavedView.Page.REPORTS.value: "audit:reports"}
_TOTALS = (
    ("entries", "entries"),
    ("calls", gettext_noop("tool calls")),
    ("failed", "failed"),
    ("refused", "refused"),
    ("waited", gettext_noop("approvals asked")),
)


@require_POST
@login_required
def save_view(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Keep a page's filters under a name."""
    page, query = request.POST.get("page", ""), request.POST.get("query", "")
    try:
        view = saved_views.save_view(
            workspace_id=workspace_of(request).pk,
            actor=request.actor,
            page=page,
            name=request.POST.get("name", ""),
            query=query,
            is_shared="is_shared" in request.POST,
        )
    except (InvalidInput, Conflict) as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("The view “%(name)s” is kept.") % {"name": view.name})
    return _back(workspace_slug, page, query)


@require_POST
@login_required
def delete_view(request: WorkspaceRequest, workspace_slug: str, view_id: UUID) -> HttpResponse:
    """Forget a view."""
    view = saved_views.delete_view(
        workspace_id=workspace_of(request).pk, actor=request.actor, view_id=view_id
    )
    messages.success(request, _("The view “%(name)s” is deleted.") % {"name": view.name})
    return _back(workspace_slug, view.page, "")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def reviews(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Who reviewed the log, and when, page by page; a form to sign off."""
    workspace = workspace_of(request)
    require(request.actor, Permission.VIEW_AUDIT, workspace_id=workspace.pk)
    now = timezone.now()
    fault, faults = "", dict[str, list[str]]()
    if request.method == "POST":
        try:
            since, until = _moment(request, "since"), _moment(request, "until")
            signing.sign_off(
                workspace_id=workspace.pk,
                actor=request.actor,
                since=since,
                until=until,
                note=request.POST.get("note", "").replace("\x00", ""),
                now=now,
            )
        except InvalidInput as error:
            fault, faults = "" if error.fields else error.message, error.fields
        else:
            messages.success(request, _("Your review is part of the log."))
            return redirect("audit:reviews", workspace_slug=workspace_slug)
    rows = SignOff.objects.for_workspace(workspace)
    page = page_in_address(rows, request.GET, by="-signed_at")
    newest = (page.rows[0] if page.rows else None) if page.is_first else rows.first()
    last = newest.until if newest is not None else now - timedelta(days=7)
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "reviews",
        "audit_url": audit_url,
        "fault": fault,
        "faults": faults,
        "form": {
            "since": request.POST.get("since") or f"{last.astimezone(UTC):%Y-%m-%dT%H:%M}",
            "until": request.POST.get("until") or f"{now.astimezone(UTC):%Y-%m-%dT%H:%M}",
            "note": request.POST.get("note", ""),
        },
        "sign_offs": [_shown(row, audit_url) for row in page.rows],
        "ways": ways_from(page, request.GET),
        "address_faults": [page.fault] if page.fault else [],
        **header_of(request),
    }
    return render(request, "audit/reviews.html", context, status=422 if fault or faults else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def schedule_list(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Files that are made again and again; a form for another."""
    workspace = workspace_of(request)
    require(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    now = timezone.now()
    fault, faults = "", dict[str, list[str]]()
    changed = _changed_schedule(request)
    if changed is not None and request.method != "POST":
        draft = schedules.draft_of(changed)
    else:
        draft = _drafted(request)
    preview: Preview | None = None
    if "preview" in request.POST:
        try:
            preview = previews.preview_schedule(
                workspace_id=workspace.pk, actor=request.actor, draft=draft, now=now
            )
        except InvalidInput as error:
            faults = error.fields
    elif request.method == "POST":
        try:
            messages.success(request, _keep_schedule(request, changed, draft, now))
        except (InvalidInput, Conflict) as error:
            faults = error.fields if isinstance(error, InvalidInput) else {}
            fault = "" if faults else error.message
        else:
            return redirect("audit:schedules", workspace_slug=workspace_slug)
    people = {str(user.pk): user for user in schedules.possible_recipients(workspace.pk)}
    rows = list(ReportSchedule.objects.for_workspace(workspace).select_related("made_by"))
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "schedules",
        "fault": fault,
        "faults": faults,
        "draft": draft,
        "changed": changed,
        "seen": schedules.draft_of(changed).digest if changed is not None else "",
        "preview": preview,
        "preview_url": _previewed(
            preview, draft.query, reverse("audit:entries", args=[workspace_slug])
        )
        if preview
        else "",
        "schedules": [_described(row, people) for row in rows],
        "views": saved_views_of(request, SavedView.Page.LOG),
        "people": [(pk, user.email, pk in draft.recipients) for pk, user in people.items()],
        "format_choices": [(name, _(label)) for name, (label, _kind) in exports.SCHEDULED.items()],
        "cadence_choices": ReportSchedule.Cadence.choices,
        "delivery_choices": ReportSchedule.Delivery.choices,
        **header_of(request),
    }
    return render(request, "audit/schedules.html", context, status=422 if fault or faults else 200)


def _changed_schedule(request: WorkspaceRequest) -> ReportSchedule | None:
    """Give the schedule that the form changes, or None: it makes another."""
    chosen = request.GET.get(_EDIT)
    if chosen is None:
        return None
    found: ReportSchedule = ReportSchedule.objects.for_workspace(workspace_of(request)).fetch(
        chosen
    )
    return found


def _drafted(request: WorkspaceRequest) -> schedules.ScheduleDraft:
    """Give what the form holds, or what it begins with."""
    return schedules.ScheduleDraft(
        name=request.POST.get("name", "").replace("\x00", ""),
        query=_query_of(request),
        format=request.POST.get("format", "csv"),
        cadence=request.POST.get("cadence", "weekly"),
        delivery=request.POST.get("delivery", "mail"),
        recipients=request.POST.getlist("recipients"),
    )


def _keep_schedule(
    request: WorkspaceRequest,
    changed: ReportSchedule | None,
    draft: schedules.ScheduleDraft,
    now: datetime,
) -> str:
    """Change a schedule or make another; gives what to tell the person."""
    if changed is None:
        made = schedules.create_schedule(
            workspace_id=workspace_of(request).pk, actor=request.actor, draft=draft, now=now
        )
        return _("“%(name)s” will be made %(cadence)s.") % {
            "name": made.name,
            "cadence": made.get_cadence_display(),
        }
    schedules.update_schedule(
        schedule=changed,
        actor=request.actor,
        draft=draft,
        now=now,
        seen=request.POST.get("seen", ""),
    )
    return _("“%(name)s” is changed.") % {"name": changed.name}


def _previewed(preview: Preview, query: str, audit_url: str) -> str:
    """Give the address of the log with what the file would hold."""
    span = {"since": preview.since.isoformat(), "until": preview.until.isoformat()}
    values = values_of(query) | {"range": "custom", "show": ENTRIES} | span
    return f"{audit_url}?{urlencode(values)}"


def _query_of(request: WorkspaceRequest) -> str:
    """Give the filters of the chosen view, or those that were typed."""
    chosen = request.POST.get("view", "")
    if not chosen:
        return request.POST.get("query", request.GET.urlencode()).replace("\x00", "")
    views = {str(view.pk): view.query for view in saved_views_of(request, SavedView.Page.LOG)}
    if chosen not in views:
        raise NotFound(_("Saved view not found."))
    return views[chosen]


@require_POST
@login_required
def change_schedule(
    request: WorkspaceRequest, workspace_slug: str, schedule_id: UUID, verb: str
) -> HttpResponse:
    """What a button of a schedule says."""
    workspace = workspace_of(request)
    require(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    schedule: ReportSchedule = ReportSchedule.objects.for_workspace(workspace).fetch(schedule_id)
    if verb == "send":
        try:
            done = scheduled_exports.send_now(schedule=schedule, actor=request.actor)
        except InvalidInput as error:
            messages.error(request, error.message)
        else:
            tell = messages.success if done.last_ok else messages.error
            tell(request, f"“{done.name}”: {done.last_result}")
    elif verb in {"pause", "resume"}:
        schedules.pause_schedule(
            schedule=schedule,
            actor=request.actor,
            is_paused=verb == "pause",
            now=timezone.now(),
        )
    elif verb == "delete":
        schedules.delete_schedule(schedule=schedule, actor=request.actor)
        messages.success(request, _("“%(name)s” is deleted.") % {"name": schedule.name})
    else:
        raise NotFound
    return redirect("audit:schedules", workspace_slug=workspace_slug)


def _described(row: ReportSchedule, people: dict[str, User]) -> dict[str, Any]:
    names = [people[pk].email for pk in row.recipients if pk in people]
    gone = len(row.recipients) - len(names)
    if gone:
        names.append(_("%(gone)s who may no longer export") % {"gone": gone})
    label = _(exports.SCHEDULED[row.format][0]) if row.format in exports.SCHEDULED else row.format
    return {"row": row, "recipients": ", ".join(names), "format": label}


def _shown(row: SignOff, audit_url: str) -> dict[str, Any]:
    query = urlencode(
        {"range": "custom", "since": row.since.isoformat(), "until": row.until.isoformat()}
    )
    totals = [f"{whole(row.totals[name])} {label}" for name, label in _TOTALS if name in row.totals]
    return {"row": row, "url": f"{audit_url}?{query}", "totals": ", ".join(totals)}


def _moment(request: WorkspaceRequest, name: str) -> datetime:
    moment = read_moment(request.POST.get(name, ""))
    if moment is None:
        raise InvalidInput(fields={name: [_("Enter a date and a time.")]})
    return moment


def _back(workspace_slug: str, page: str, query: str) -> HttpResponse:
    url = reverse(_ROUTES.get(page, "audit:entries"), args=[workspace_slug])
    return redirect(f"{url}?{query}" if query else url)
