"""What a workspace's file says of its log: alerts, streams, shared views and schedules."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.alerts.services import AlertRuleDraft, create_rule, switch_rule, update_rule
from audit.models import AlertRule, AuditStream, ReportSchedule, SavedView
from audit.reviews.saved_views import change_view, save_view
from audit.reviews.schedules import (
    ScheduleDraft,
    create_schedule,
    pause_schedule,
    possible_recipients,
    update_schedule,
)
from audit.streams.services import (
    StreamDraft,
    StreamStart,
    create_stream,
    pause_stream,
    update_stream,
)
from config.workspace_files.shapes import AlertFile, ScheduleFile, StreamFile, ViewFile
from config.workspace_files.target import WorkspaceTarget, faults_at, stored_or_given
from workspaces.errors import InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, has_permission
from workspaces.secret_memory import without_secrets

_ALERT = tuple(name for name in AlertFile.model_fields if name != "is_active")


def alert_files(target: WorkspaceTarget) -> list[AlertFile]:
    """Every alert rule, by name; what is secret in an address is masked."""
    rows = AlertRule.objects.for_workspace(target.pk).order_by("name", "id")
    files = (
        AlertFile(**{name: getattr(row, name) for name in AlertFile.model_fields}) for row in rows
    )
    return [
        one.model_copy(update={"webhook_url": without_secrets(one.webhook_url)}) for one in files
    ]


def put_alert(target: WorkspaceTarget, wanted: AlertFile, present: Mapping[str, AlertFile]) -> None:
    """Add a rule or change the first one of that name.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get(wanted.name)
    if wanted == now:
        return
    rows = AlertRule.objects.for_workspace(target.pk).filter(name=wanted.name).order_by("id")
    rule = rows[0] if now is not None else None
    secret = ""
    with faults_at(f"alerts.{wanted.name}"):
        draft = AlertRuleDraft(
            **{
                **wanted.model_dump(mode="json", include=set(_ALERT)),
                "webhook_url": stored_or_given(
                    "webhook_url",
                    wanted.webhook_url,
                    now.webhook_url if now else None,
                    rule.webhook_url if rule else None,
                ),
            }
        )
        if now is None or rule is None:
            rule, secret = create_rule(workspace_id=target.pk, actor=target.actor, draft=draft)
        elif any(getattr(wanted, name) != getattr(now, name) for name in _ALERT):
            secret = update_rule(rule=rule, actor=target.actor, draft=draft)
        if rule.is_active != wanted.is_active:
            switch_rule(rule=rule, actor=target.actor, is_active=wanted.is_active)
    if secret:
        _tell_secret(target, wanted.name)


def stream_files(target: WorkspaceTarget) -> list[StreamFile]:
    """Every stream of the workspace, by name; what is secret in an address is masked."""
    names = ("name", "kind", "target", "ca_certificates", "client_certificate", "is_paused")
    rows = AuditStream.objects.for_workspace(target.pk).order_by("name", "id")
    files = (StreamFile(**{name: getattr(row, name) for name in names}) for row in rows)
    return [one.model_copy(update={"target": without_secrets(one.target)}) for one in files]


def put_stream(
    target: WorkspaceTarget, wanted: StreamFile, present: Mapping[str, StreamFile]
) -> None:
    """Add a stream, which begins with what comes from now on, or change the first one of that name.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get(wanted.name)
    rows = AuditStream.objects.for_workspace(target.pk).filter(name=wanted.name).order_by("id")
    stream = rows[0] if now is not None else None
    with faults_at(f"streams.{wanted.name}"):
        draft = StreamDraft(
            name=wanted.name,
            target=stored_or_given(
                "target",
                wanted.target,
                now.target if now else None,
                stream.target if stream else None,
            ),
            headers=wanted.headers,
            ca_certificates=wanted.ca_certificates,
            client_certificate=wanted.client_certificate,
            client_key=wanted.client_key,
        )
        if now is None or stream is None:
            stream, secret = create_stream(
                workspace_id=target.pk,
                actor=target.actor,
                kind=wanted.kind.value,
                draft=draft,
                start=StreamStart.NOW,
            )
            if secret:
                _tell_secret(target, wanted.name)
        else:
            if wanted.kind is not now.kind:
                raise InvalidInput(fields={"kind": [_("A stream keeps its kind. Name a new one.")]})
            if wanted.model_copy(update={"is_paused": now.is_paused}) != now:
                stream = update_stream(stream=stream, actor=target.actor, draft=draft)
        if stream.is_paused != wanted.is_paused:
            pause_stream(stream=stream, actor=target.actor, is_paused=wanted.is_paused)


def _tell_secret(target: WorkspaceTarget, name: str) -> None:
    target.notes.append(
        _("“%(name)s” signs with a new secret. Renew it on its page to see it.") % {"name": name}
    )


def view_files(target: WorkspaceTarget) -> list[ViewFile]:
    """The views that all readers of the log share; of two with one name, the older one."""
    if not has_permission(target.actor, Permission.VIEW_AUDIT, workspace_id=target.pk):
        return []
    rows = SavedView.objects.for_workspace(target.pk).filter(is_shared=True)
    found: dict[tuple[str, str], ViewFile] = {}
    for row in rows.order_by("page", "name", "id"):
        view = ViewFile(name=row.name, page=SavedView.Page(row.page), query=row.query)
        found.setdefault((row.page, row.name), view)
    return list(found.values())


def put_view(
    target: WorkspaceTarget, wanted: ViewFile, present: Mapping[tuple[str, str], ViewFile]
) -> None:
    """Add a shared view, or change it.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get((wanted.page, wanted.name))
    if wanted == now:
        return
    with faults_at(f"views.{wanted.name}"):
        if now is None:
            save_view(
                workspace_id=target.pk,
                actor=target.actor,
                page=wanted.page,
                name=wanted.name,
                query=wanted.query,
                is_shared=True,
            )
            return
        rows = SavedView.objects.for_workspace(target.pk).filter(is_shared=True)
        view = rows.filter(page=wanted.page, name=wanted.name).order_by("id")[0]
        change_view(view=view, actor=target.actor, query=wanted.query)


def schedules_left_out(target: WorkspaceTarget) -> str:
    """Say in a comment that the file has no schedules, because whoever takes it may not export the log."""
    if _may_export(target):
        return ""
    number = ReportSchedule.objects.for_workspace(target.pk).count()
    if not number:
        return ""
    pattern = ngettext("%(number)s schedule of the log", "%(number)s schedules of the log", number)
    return (
        _("# Not in this file: %(schedules)s. It takes the auditor right to read them.")
        % {"schedules": pattern % {"number": number}}
        + "\n"
    )


def _may_export(target: WorkspaceTarget) -> bool:
    return has_permission(target.actor, Permission.EXPORT_AUDIT, workspace_id=target.pk)


def schedule_files(target: WorkspaceTarget) -> list[ScheduleFile]:
    """Every schedule, with the addresses of who gets it."""
    if not _may_export(target):
        return []
    rows = list(ReportSchedule.objects.for_workspace(target.pk).order_by("name", "id"))
    people = {pk for row in rows for pk in row.recipients}
    emails = {
        str(pk): email
        for pk, email in User.objects.filter(pk__in=people).values_list("pk", "email")
    }
    names = (
        *("name", "query", "format", "cadence", "hour", "time_zone", "covers", "delivery"),
        "is_active",
    )
    return [
        ScheduleFile(
            **{name: getattr(row, name) for name in names},
            recipients=sorted(emails[pk] for pk in row.recipients if pk in emails),
        )
        for row in rows
    ]


def put_schedule(
    target: WorkspaceTarget, wanted: ScheduleFile, present: Mapping[str, ScheduleFile]
) -> None:
    """Add a schedule, or change the first one of that name.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    now = present.get(wanted.name)
    if wanted.model_copy(update={"recipients": sorted(wanted.recipients)}) == now:
        return
    people = {user.email: str(user.pk) for user in possible_recipients(target.pk)}
    with faults_at(f"schedules.{wanted.name}"):
        if strangers := [one for one in wanted.recipients if one not in people]:
            message = _("“%(strangers)s” is not a member who may export the log.") % {
                "strangers": strangers[0]
            }
            raise InvalidInput(fields={"recipients": [message]})
        draft = ScheduleDraft(
            name=wanted.name,
            query=wanted.query,
            format=wanted.format,
            cadence=wanted.cadence.value,
            hour=wanted.hour,
            time_zone=wanted.time_zone,
            covers=wanted.covers.value,
            delivery=wanted.delivery.value,
            recipients=[people[one] for one in wanted.recipients],
        )
        at = timezone.now()
        if now is None:
            schedule = create_schedule(
                workspace_id=target.pk, actor=target.actor, draft=draft, now=at
            )
        else:
            rows = ReportSchedule.objects.for_workspace(target.pk).filter(name=wanted.name)
            schedule = rows.order_by("id")[0]
            update_schedule(schedule=schedule, actor=target.actor, draft=draft, now=at)
        if schedule.is_active != wanted.is_active:
            pause_schedule(
                schedule=schedule, actor=target.actor, is_paused=not wanted.is_active, now=at
            )
