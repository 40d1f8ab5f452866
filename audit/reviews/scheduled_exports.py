"""Making and sending scheduled files: each once, by whichever worker claims it first; what failed is said in plain words."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages
from django.db import DatabaseError
from django.utils.translation import gettext as _
from django.utils.translation import override

from audit.exports.formats import FORMATS
from audit.exports.records import record_export
from audit.exports.report_files import PDF, SCHEDULED, report_pdf
from audit.filters import EntryFilter
from audit.models import ReportSchedule
from audit.reports.entries import entries_of
from audit.reports.searching import matching
from audit.reviews.schedules import filter_of, may_export, next_run, period_before
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import DomainError, InvalidInput
from workspaces.formats import day_in_utc, written_for
from workspaces.mails import compose
from workspaces.models import User, Workspace
from workspaces.outbox import claim_until, unclaimed
from workspaces.roles import Permission, require

logger = logging.getLogger(__name__)

CLAIM_SECONDS = 30 * 60
RETRY = timedelta(hours=1)
MOST_MAILED = 15 * 1024 * 1024
AT_ONCE = 5


def send_due() -> int:
    """Make and send what is due, a few at a time; gives how many."""
    done = 0
    for _turn in range(AT_ONCE):
        schedule = _claim()
        if schedule is None:
            break
        _run(schedule)
        done += 1
    return done


def send_now(*, schedule: ReportSchedule, actor: Actor) -> ReportSchedule:
    """Make and send one now, beside its own times.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: it is being made by somebody else right now.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    if not _take(schedule.workspace_id, schedule.pk):
        raise InvalidInput(_("This export is being made right now."))
    schedule.refresh_from_db()
    _run(schedule, is_extra=True)
    return schedule


def _claim() -> ReportSchedule | None:
    now = database_now()
    due = ReportSchedule.objects.across_workspaces().filter(is_active=True, next_run_at__lte=now)
    for row in due.filter(unclaimed(now)).order_by("next_run_at", "pk")[:AT_ONCE]:
        if _take(row.workspace_id, row.pk, only_due=True):
            row.refresh_from_db()
            return row
    return None


def _take(workspace_id: UUID, schedule_id: UUID, *, only_due: bool = False) -> bool:
    """Claim one, so that only one worker makes it."""
    wanted = ReportSchedule.objects.for_workspace(workspace_id).filter(pk=schedule_id)
    if only_due:
        wanted = wanted.filter(is_active=True, next_run_at__lte=database_now())
    return claim_until(wanted, seconds=CLAIM_SECONDS)


def _run(schedule: ReportSchedule, *, is_extra: bool = False) -> None:
    now = database_now()
    fault, result = "", ""
    try:
        # The mail and the result are for others, and state their time zone.
        with override(settings.LANGUAGE_CODE), written_for(None):
            result = _send(schedule, schedule.next_run_at if not is_extra else now)
    except DomainError as error:
        fault = error.message
    except OSError:  # SMTP's and the store's errors are some of these
        logger.warning("audit_schedule_failed", extra={"schedule": str(schedule.pk)}, exc_info=True)
        fault = _("The mail could not be handed over, or the file not be stored.")
    except DatabaseError:
        logger.exception("audit_schedule_failed", extra={"schedule": str(schedule.pk)})
        fault = _("The log could not be read.")
    except Exception:
        logger.exception("audit_schedule_crashed", extra={"schedule": str(schedule.pk)})
        fault = _("It could not be made.")
    changes: dict[str, object] = {
        "claimed_until": None,
        "last_run_at": now,
        "last_ok": not fault,
        "last_result": (fault or result)[:500],
    }
    if not is_extra:
        # After a failure again within the same day, so that it stays the same period's file.
        changes["next_run_at"] = now + RETRY if fault else next_run(schedule.cadence, now)
    ReportSchedule.objects.for_workspace(schedule.workspace_id).filter(pk=schedule.pk).update(
        **changes
    )
    schedule.refresh_from_db()


def _send(schedule: ReportSchedule, moment: datetime) -> str:
    workspace = Workspace.objects.get(pk=schedule.workspace_id)
    maker = User.objects.get(pk=schedule.made_by_id)
    actor = may_export(maker, workspace)
    if actor is None:
        raise InvalidInput(
            _("%(email)s made this schedule, and may no longer export the log.")
            % {"email": maker.email}
        )
    to = [
        user
        for user in User.objects.filter(pk__in=schedule.recipients)
        if may_export(user, workspace)
    ]
    by_mail = schedule.delivery == ReportSchedule.Delivery.MAIL
    if by_mail and not to:
        raise InvalidInput(_("None of the recipients may export the log any more. Choose others."))
    since, until = period_before(schedule.cadence, moment)
    wanted = replace(filter_of(schedule.query, now=moment), since=since, until=until)
    record_export(
        actor=actor,
        workspace_id=workspace.pk,
        format_name=schedule.format,
        wanted=wanted,
        schedule=schedule.name,
        to=[user.email for user in to] if by_mail else ["file store"],
    )
    name = f"trellis-audit-{workspace.slug}-{since:%Y%m%d}-{until:%Y%m%d}.{schedule.format}"
    with tempfile.TemporaryDirectory(prefix="trellis-report-") as folder:
        path = Path(folder) / name
        with path.open("wb") as file:
            for piece in _pieces(schedule, workspace, wanted, actor):
                file.write(piece)
                if by_mail and file.tell() > MOST_MAILED:
                    raise InvalidInput(
                        _(
                            "The file is too large for a mail (15 MB). Narrow the filters, or store the file instead."
                        )
                    )
        if by_mail:
            _mail(schedule, path, [user.email for user in to], since, until)
            return _("Sent to %(people)s.") % {"people": ", ".join(user.email for user in to)}
        with path.open("rb") as file:
            stored = storages["audit_reports"].save(f"{workspace.slug}/{name}", File(file))
        return _("Stored as %(file)s.") % {"file": stored}


def _pieces(
    schedule: ReportSchedule, workspace: Workspace, wanted: EntryFilter, actor: Actor
) -> Iterator[bytes]:
    if schedule.format == PDF:
        yield report_pdf(workspace, wanted, actor=actor, now=database_now())
        return
    rows = matching(entries_of(workspace.pk, actor=actor), wanted, actor=actor)
    yield from FORMATS[schedule.format].stream(rows)


def _mail(
    schedule: ReportSchedule, path: Path, to: list[str], since: datetime, until: datetime
) -> None:
    values = {
        "name": schedule.name,
        "since": day_in_utc(since),
        "until": day_in_utc(until),
        "cadence": schedule.get_cadence_display(),
    }
    attached = _(
        "The audit log from %(since)s to %(until)s (UTC, the last day not included) is attached."
    )
    scheduled = _("It was scheduled %(cadence)s as “%(name)s”.")
    message = compose(
        subject=_("Audit log: %(name)s") % values,
        text=f"{attached % values}\n\n{scheduled % values}\n",
        to=to,
        message_id=f"{schedule.pk}.{since:%Y%m%d}",
    )
    kind = SCHEDULED[schedule.format][1].partition(";")[0]
    message.attach(path.name, path.read_bytes(), kind)
    message.send()
