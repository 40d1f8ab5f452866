"""Pages of files of the log that are sent again and again: three choices, a preview, and what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import dateformat, timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from audit import exports
from audit.exports.formats import Sample
from audit.models import ReportSchedule, SavedView, SentFile
from audit.reports.filter_words import names_in, set_filters
from audit.reviews import making, previews, scheduled_exports, schedules, sent_files
from audit.reviews.previews import ReportPreview
from audit.reviews.ready_views import READY, ready_view, usual_name
from audit.reviews.schedules import ScheduleDraft
from audit.reviews.stored_filters import as_typed, filter_of, kept_query, meaning_of
from audit.reviews.timing import USUAL_HOUR
from audit.views.header import header_of
from audit.views.header import saved_views as saved_views_of
from audit.views.sent_files import shown_file
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import User
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import (
    clock_of_hour,
    moment_in,
    time_zone_name,
    time_zone_of,
    time_zones,
)
from workspaces.words.text_values import read_whole_number

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_EDIT: Final = "edit"
"""In the address of the schedules' page: whose form is open."""
_READY: Final = "ready:"
"""How a ready view is named in the form; a saved one has its id, and filters of one's own nothing."""
_BESIDE: Final = frozenset({_EDIT, "format", "after"})
"""What the page's address has beside the filters that a form begins with."""
_MORE: Final = ("name", "format", "covers", "time_zone", "delivery")
"""Fields that are folded, because they have good values already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What the form holds."""

    view: str
    view_name: str
    view_help: str
    draft: ScheduleDraft
    is_gone: bool = False
    """The view that was chosen is not there any more: the filters are those that the form held."""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def schedule_list(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Files that are sent again and again; a form for another, with its preview."""
    workspace = workspace_of(request, Permission.EXPORT_AUDIT)
    now = timezone.now()
    fault, faults = "", dict[str, list[str]]()
    changed = _changed_schedule(request)
    chosen = _chosen(request, changed)
    preview: ReportPreview | None = None
    trial: SentFile | None = None
    if request.method == "POST":
        try:
            if chosen.is_gone:
                raise InvalidInput(fields={"view": [_gone_view()]})
            if "preview" in request.POST:
                preview = previews.preview_schedule(
                    workspace=workspace, actor=request.actor, draft=chosen.draft, now=now
                )
            elif "to_me" in request.POST:
                trial = scheduled_exports.send_to_me(
                    workspace=workspace, actor=request.actor, draft=chosen.draft, schedule=changed
                )
            else:
                messages.success(request, _keep_schedule(request, changed, chosen.draft, now))
                return redirect("audit:schedules", workspace_slug=workspace_slug)
        except (InvalidInput, Conflict) as error:
            faults = error.fields if isinstance(error, InvalidInput) else {}
            fault = "" if faults else error.message
    people, is_cut = schedules.offered_recipients(workspace.pk, chosen.draft.recipients)
    rows = list(
        ReportSchedule.objects.for_workspace(workspace).select_related("made_by")[: schedules.MOST]
    )
    names = _names_of(rows, people)
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "schedules",
        "fault": fault,
        "faults": faults,
        "has_more_faults": any(faults.get(name) for name in _MORE),
        "draft": chosen.draft,
        "typed_query": as_typed(chosen.draft.query, now=now),
        "typed_name": request.POST.get("name", changed.name if changed else ""),
        "changed": changed,
        "seen": schedules.draft_of(changed).digest if changed is not None else "",
        "preview": preview,
        "preview_url": f"{reverse('audit:entries', args=[workspace_slug])}?{preview.log_query}"
        if preview
        else "",
        "preview_rows": _filled_columns(preview.sample) if preview else None,
        "trial": trial,
        "trial_url": sent_files.path_of(trial) if trial else "",
        "schedules": [_described(row, names) for row in rows],
        "people": people,
        "are_people_cut": is_cut,
        "most_people": schedules.MOST_OFFERED,
        "hours": [(hour, clock_of_hour(hour)) for hour in range(24)],
        "time_zones": time_zones(),
        "is_zone_guessed": changed is None
        and request.method != "POST"
        and not request.user.time_zone,
        "format_choices": [(name, _(label)) for name, (label, _kind) in exports.SCHEDULED.items()],
        "cadence_choices": ReportSchedule.Cadence.choices,
        "covers_choices": ReportSchedule.Covers.choices,
        "delivery_choices": ReportSchedule.Delivery.choices,
        "view": chosen.view,
        "view_choices": _view_choices(request),
        **_summary(chosen, workspace.pk, now),
        "view_fault": "",  # told at its field
        **header_of(request),
    }
    return render(request, "audit/schedules.html", context, status=422 if fault or faults else 200)


@require_GET
@login_required
def schedule_summary(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What the choices of the form come to, in words, while a person makes them."""
    workspace = workspace_of(request, Permission.EXPORT_AUDIT)
    context = _summary(_read_choices(request, request.GET), workspace.pk, timezone.now())
    return render(request, "audit/_schedule_summary.html", context)


@require_GET
@login_required
def schedule_page(
    request: WorkspaceRequest, workspace_slug: str, schedule_id: UUID
) -> HttpResponse:
    """One schedule, and what it has sent, page by page: to whom, how much, and who signed it off."""
    workspace = workspace_of(request)
    rows = sent_files.sent_files(workspace.pk, actor=request.actor)
    schedule: ReportSchedule = (
        ReportSchedule.objects.for_workspace(workspace).select_related("made_by").fetch(schedule_id)
    )
    page = page_in_address(rows.filter(schedule=schedule), request.GET, by="-created_at")
    signed = sent_files.sign_offs_of(workspace.pk, page.rows, reader=request.user)
    people = schedules.people_of(workspace.pk, schedule.recipients)
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "schedules",
        "schedule": _described(schedule, {str(user.pk): user for user in people}),
        "draft": schedules.draft_of(schedule),
        "filters": _filters_in_words(schedule.query, workspace.pk, timezone.now()),
        "files": [
            shown_file(row, signed.get(row.pk, []), audit_url, reader=request.user)
            for row in page.rows
        ],
        "kept_days": sent_files.KEEP_DAYS,
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
        **header_of(request),
    }
    return render(request, "audit/schedule.html", context)


@require_POST
@login_required
def change_schedule(
    request: WorkspaceRequest, workspace_slug: str, schedule_id: UUID, verb: str
) -> HttpResponse:
    """What a button of a schedule says."""
    workspace = workspace_of(request, Permission.EXPORT_AUDIT)
    schedule: ReportSchedule = ReportSchedule.objects.for_workspace(workspace).fetch(schedule_id)
    if verb == "send":
        with telling_refusals(request, InvalidInput):
            done = scheduled_exports.send_now(schedule=schedule, actor=request.actor)
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
    if request.POST.get("from") == "schedule" and verb != "delete":
        return redirect(
            "audit:schedule-page", workspace_slug=workspace_slug, schedule_id=schedule_id
        )
    return redirect("audit:schedules", workspace_slug=workspace_slug)


def _changed_schedule(request: WorkspaceRequest) -> ReportSchedule | None:
    """Give the schedule that the form changes, or None: it makes another."""
    chosen = request.GET.get(_EDIT)
    if chosen is None:
        return None
    found: ReportSchedule = ReportSchedule.objects.for_workspace(workspace_of(request)).fetch(
        chosen
    )
    return found


def _chosen(request: WorkspaceRequest, changed: ReportSchedule | None) -> _Chosen:
    """Give what the form holds, or what it begins with."""
    if request.method == "POST":
        return _read_choices(request, request.POST)
    if changed is not None:
        draft = schedules.draft_of(changed)
        return _recognised(request, draft)
    given = {name: value for name, value in request.GET.items() if name not in _BESIDE}
    asked = request.GET.get("format", "csv")
    draft = ScheduleDraft(
        name="",
        query=kept_query(urlencode(given)).replace("\x00", ""),
        format=asked if asked in exports.SCHEDULED else "csv",
        cadence=ReportSchedule.Cadence.WEEKLY.value,
        delivery=ReportSchedule.Delivery.MAIL.value,
        recipients=[str(request.user.pk)],
        hour=USUAL_HOUR,
        time_zone=time_zone_name(),
    )
    return _recognised(request, draft)


def _recognised(request: WorkspaceRequest, draft: ScheduleDraft) -> _Chosen:
    """Name the view whose filters a draft has."""
    now = timezone.now()
    wanted = meaning_of(draft.query, now=now)
    for ready in READY:
        if meaning_of(ready.query, now=now) == wanted:
            return _Chosen(
                view=f"{_READY}{ready.key}",
                view_name=_(ready.label),
                view_help=_(ready.help),
                draft=draft,
            )
    for view in saved_views_of(request, SavedView.Page.LOG):
        if meaning_of(view.query, now=now) == wanted:
            return _Chosen(view=str(view.pk), view_name=view.name, view_help="", draft=draft)
    return _Chosen(view="", view_name="", view_help="", draft=draft)


def _read_choices(request: WorkspaceRequest, given: Mapping[str, str]) -> _Chosen:
    """Read the form. A choice that is none stays as it is, for the service to refuse."""
    view, is_gone = given.get("view", ""), False
    query, name, view_help = given.get("query", "").replace("\x00", ""), "", ""
    if view.startswith(_READY):
        ready = ready_view(view.removeprefix(_READY))
        if ready is not None:
            query, name, view_help = ready.query, _(ready.label), _(ready.help)
        is_gone = ready is None
    elif view:
        saved = {str(one.pk): one for one in saved_views_of(request, SavedView.Page.LOG)}
        if (found := saved.get(view)) is not None:
            query, name = found.query, found.name
        is_gone = found is None
    cadence = given.get("cadence", ReportSchedule.Cadence.WEEKLY.value)
    hour = read_whole_number(given.get("hour", str(USUAL_HOUR)), most=23)
    recipients = request.POST.getlist("recipients")
    draft = ScheduleDraft(
        name=given.get("name", "").replace("\x00", "").strip() or usual_name(name, cadence),
        query=query,
        format=given.get("format", "csv"),
        cadence=cadence,
        delivery=given.get("delivery", ReportSchedule.Delivery.MAIL.value),
        recipients=recipients,
        hour=-1 if hour is None else hour,
        time_zone=given.get("time_zone", "").strip() or time_zone_name(),
        covers=given.get("covers", ""),
    )
    return _Chosen(
        view="" if is_gone else view,
        view_name=name,
        view_help=view_help,
        draft=draft,
        is_gone=is_gone,
    )


def _gone_view() -> str:
    return _("The view that you chose was deleted. Choose another one, or keep the filters below.")


def _view_choices(request: WorkspaceRequest) -> list[tuple[str, list[tuple[str, str]]]]:
    """Give the views to pick from, in groups."""
    saved = saved_views_of(request, SavedView.Page.LOG)
    return [
        (_("Ready"), [(f"{_READY}{one.key}", _(one.label)) for one in READY]),
        *([(_("Saved views"), [(str(one.pk), one.name) for one in saved])] if saved else []),
        (_("Yours"), [("", _("Filters that you type"))]),
    ]


def _summary(chosen: _Chosen, workspace_id: UUID, now: datetime) -> dict[str, Any]:
    """Say in words what the choices come to; nothing of those that are none."""
    draft = chosen.draft
    is_time = (
        draft.cadence in ReportSchedule.Cadence.values
        and draft.hour in range(24)
        and draft.time_zone in time_zones()
        and draft.covers in ReportSchedule.Covers.values
    )
    zone = time_zone_of(draft.time_zone)
    runs = draft.next_runs(now) if is_time else []
    first = making.period_in_words(*draft.period_before(runs[0]), zone) if runs else ""
    return {
        "view_help": chosen.view_help,
        "view_fault": _gone_view() if chosen.is_gone else "",
        "filters": _filters_in_words(draft.query, workspace_id, now),
        "runs": [_weekday_and_moment(one, draft.time_zone) for one in runs],
        "zone": draft.time_zone,
        "first_days": first,
    }


def _weekday_and_moment(at: datetime, time_zone: str) -> str:
    zone = time_zone_of(time_zone)
    return f"{dateformat.format(at.astimezone(zone), 'D')} {moment_in(at, zone)}"


def _filters_in_words(query: str, workspace_id: UUID, now: datetime) -> str:
    wanted = filter_of(query, now=now)
    shown = set_filters(wanted, names_in(wanted, workspace_id), usual="all")
    return " · ".join(f"{one.label}: {one.value}" for one in shown)


def _keep_schedule(
    request: WorkspaceRequest,
    changed: ReportSchedule | None,
    draft: ScheduleDraft,
    now: datetime,
) -> str:
    """Change a schedule or make another; gives what to tell the person."""
    if changed is None:
        made = schedules.create_schedule(
            workspace_id=workspace_of(request).pk, actor=request.actor, draft=draft, now=now
        )
        return _("“%(name)s” is scheduled. The first file is made on %(time)s (%(zone)s).") % {
            "name": made.name,
            "time": moment_in(made.next_run_at, time_zone_of(made.time_zone)),
            "zone": made.time_zone,
        }
    schedules.update_schedule(
        schedule=changed,
        actor=request.actor,
        draft=draft,
        now=now,
        seen=request.POST.get("seen", ""),
    )
    return _("“%(name)s” is changed.") % {"name": changed.name}


def _names_of(rows: Sequence[ReportSchedule], people: Sequence[User]) -> Mapping[str, User]:
    """Give the people of some schedules by id, with those whom the form offers."""
    known = {str(user.pk): user for user in people}
    others = {pk for row in rows for pk in row.recipients} - set(known)
    if others and rows:
        found = schedules.people_of(rows[0].workspace_id, sorted(others))
        known |= {str(user.pk): user for user in found}
    return known


def _described(row: ReportSchedule, people: Mapping[str, User]) -> dict[str, Any]:
    names = [people[pk].display_name for pk in row.recipients if pk in people]
    former = len(row.recipients) - len(names)
    if former:
        names.append(_("%(gone)s who may no longer export") % {"gone": former})
    label = _(exports.SCHEDULED[row.format][0]) if row.format in exports.SCHEDULED else row.format
    return {
        "row": row,
        "recipients": ", ".join(names),
        "format": label,
        "time": making.time_in_words(schedules.draft_of(row)),
        "next": _weekday_and_moment(row.next_run_at, row.time_zone),
    }


def _filled_columns(sample: Sample) -> dict[str, Any] | None:
    """Leave out the columns that hold nothing in the rows that are shown."""
    if not sample.rows:
        return None
    filled = [at for at in range(len(sample.head)) if any(row[at] for row in sample.rows)]
    return {
        "head": [sample.head[at] for at in filled],
        "rows": [[row[at] for at in filled] for row in sample.rows],
        "left_out": len(sample.head) - len(filled),
    }
