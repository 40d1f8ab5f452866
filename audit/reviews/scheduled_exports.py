"""Making and sending scheduled files: each once, by whichever worker claims it first; what failed is said in plain words."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages
from django.db import DatabaseError
from django.utils.translation import gettext as _
from django.utils.translation import override

from audit.exports.records import record_export
from audit.exports.report_files import SCHEDULED
from audit.models import ReportSchedule, SentFile
from audit.reviews import making
from audit.reviews.making import MOST_MAILED
from audit.reviews.schedules import ScheduleDraft, draft_of, faults_of, may_export
from audit.reviews.sent_files import filter_of_file, path_of
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.mails import compose, public_url
from workspaces.delivery.outbox import claim_kept, claim_until, unclaimed
from workspaces.errors import Conflict, DomainError, InvalidInput, PermissionDenied
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.words.formats import written_for

logger = logging.getLogger(__name__)

CLAIM_SECONDS = 30 * 60
RETRY = timedelta(hours=1)
MOST_ATTEMPTS: Final = 24
"""Of one file, so about a day; then the next one's turn comes, and people can send this one by hand."""
CATCH_UP: Final = timedelta(days=7)
"""After a time without workers the file that was due first is made, and then those of this time."""
AT_ONCE = 5
_OF_ATTEMPT: Final = (
    *("status", "attempts", "fault", "asked_by", "sent_to", "stored_as", "entries", "calls"),
    *("size", "sent_at", "updated_at"),
)
"""What an attempt changes. The schedule is not among it: it may be deleted meanwhile."""
_Status = SentFile.Status


def send_due() -> int:
    """Make and send what is due, a few at a time; gives how many."""
    done = 0
    for _turn in range(AT_ONCE):
        schedule = _claim()
        if schedule is None:
            break
        _run_due(schedule)
        done += 1
    return done


def send_now(*, schedule: ReportSchedule, actor: Actor) -> ReportSchedule:
    """Make and send the newest file now, beside the schedule's own times.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: it is being made by somebody else right now.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    sent = making.file_of(draft_of(schedule), schedule.workspace, database_now())
    sent.schedule = schedule
    _run_by_hand(schedule, sent, asked_by=actor.label[:254])
    return schedule


def send_again(*, sent: SentFile, actor: Actor) -> SentFile:
    """Make and send a file that was not sent, of the same time and with the same filters.

    Raises:
        PermissionDenied: the actor may not export.
        Conflict: it was sent, was for one person alone, or its schedule is gone.
        InvalidInput: it is being made by somebody else right now.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=sent.workspace_id)
    _check_unsent(sent)
    if sent.is_trial:
        raise Conflict(_("This file was for the person who asked for it alone."))
    if sent.schedule is None:
        raise Conflict(_("Its schedule no longer exists, so nobody is there to get it."))
    _run_by_hand(sent.schedule, sent, asked_by=actor.label[:254])
    return sent


def _check_unsent(sent: SentFile) -> None:
    if sent.status == _Status.SENT:
        raise Conflict(_("This file was sent already."))


def send_to_me(
    *,
    workspace: Workspace,
    actor: Actor,
    draft: ScheduleDraft,
    schedule: ReportSchedule | None = None,
) -> SentFile:
    """Send the newest file of such a schedule to the actor alone, with the mail that everybody would get.

    Args:
        schedule: the one whose form this is, if it is stored already.

    Raises:
        PermissionDenied: the actor may not export, or is no person.
        InvalidInput: with what is wrong at which field.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    if actor.user_id is None:
        raise PermissionDenied
    mine = replace(
        draft, delivery=ReportSchedule.Delivery.MAIL.value, recipients=[str(actor.user_id)]
    )
    faults = faults_of(mine, workspace_id=workspace.pk, now=database_now())
    if faults:
        raise InvalidInput(fields=faults)
    sent = making.file_of(mine, workspace, database_now())
    sent.schedule, sent.is_trial, sent.asked_by = schedule, True, actor.label[:254]
    sent.save()
    _attempt(sent, mine, maker=User.objects.get(pk=actor.user_id), gives_up=True)
    return sent


def _claim() -> ReportSchedule | None:
    now = database_now()
    # Those of a suspended workspace wait until it is open again.
    due = ReportSchedule.objects.across_workspaces().filter(
        is_active=True, workspace__is_active=True, next_run_at__lte=now
    )
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


def _run_due(schedule: ReportSchedule) -> None:
    """Make the file whose time has come, or the one before it that could not be sent yet: no file is lost to a later one."""
    draft = draft_of(schedule)
    rows = SentFile.objects.for_workspace(schedule.workspace_id).filter(schedule=schedule)
    # Those by hand have no due time: where their process died, nobody tries again.
    waiting = rows.filter(status=_Status.WAITING, due_at__isnull=False)
    sent = waiting.select_related("workspace").order_by("created_at").first()
    if sent is None:
        sent = making.file_of(draft, schedule.workspace, schedule.next_run_at)
        sent.schedule = schedule
        sent.due_at = schedule.next_run_at
        sent.save()
    if sent.attempts >= MOST_ATTEMPTS:
        sent.status = _Status.FAILED
        sent.fault = _("The process that made it ended each time. Narrow the filters.")
        sent.save(update_fields=_OF_ATTEMPT)
    else:
        is_last = sent.attempts + 1 >= MOST_ATTEMPTS
        sent.asked_by = ""  # somebody may have tried by hand before
        with claim_kept(_row_of(schedule), seconds=CLAIM_SECONDS):
            _attempt(sent, draft, maker=schedule.made_by, gives_up=is_last)
    if sent.status == _Status.WAITING:
        _note(schedule, sent, next_run_at=database_now() + RETRY)
    else:
        _note(schedule, sent, next_run_at=_after(sent, draft))


def _after(sent: SentFile, draft: ScheduleDraft) -> datetime:
    """Give when the next file is due: what came due while this one was tried again is made at the next look."""
    assert sent.due_at is not None
    return draft.next_run(max(sent.due_at, database_now() - CATCH_UP))


def _run_by_hand(schedule: ReportSchedule, sent: SentFile, *, asked_by: str) -> None:
    if not _take(schedule.workspace_id, schedule.pk):
        raise InvalidInput(_("This export is being made right now."))
    schedule.refresh_from_db()
    if not sent._state.adding:
        sent.refresh_from_db()
        try:
            _check_unsent(sent)  # a worker may have sent it just before
        except Conflict:
            _let_go(schedule)
            raise
        sent.asked_by = asked_by
    else:
        sent.asked_by = asked_by
        sent.save()
    was_waiting = sent.status == _Status.WAITING and sent.due_at is not None
    with claim_kept(_row_of(schedule), seconds=CLAIM_SECONDS):
        _attempt(sent, draft_of(schedule), maker=schedule.made_by, gives_up=not was_waiting)
    is_done = was_waiting and sent.status == _Status.SENT
    _note(schedule, sent, next_run_at=_after(sent, draft_of(schedule)) if is_done else None)


def _note(schedule: ReportSchedule, sent: SentFile, *, next_run_at: datetime | None) -> None:
    """Let go of a schedule, and say at it how its last file went."""
    is_ok = sent.status == _Status.SENT
    _let_go(
        schedule,
        last_run_at=database_now(),
        last_ok=is_ok,
        last_result=(result_in_words(sent) if is_ok else sent.fault)[:500],
        next_run_at=next_run_at,
    )


def _let_go(
    schedule: ReportSchedule, *, next_run_at: datetime | None = None, **changes: object
) -> None:
    rows = _row_of(schedule)
    if next_run_at is not None:  # unless somebody chose another time while the file was made
        rows.filter(next_run_at=schedule.next_run_at).update(next_run_at=next_run_at)
    if rows.update(claimed_until=None, **changes):  # else it was deleted meanwhile
        schedule.refresh_from_db()


def _row_of(schedule: ReportSchedule) -> WorkspaceQuerySet[ReportSchedule]:
    return ReportSchedule.objects.for_workspace(schedule.workspace_id).filter(pk=schedule.pk)


def result_in_words(sent: SentFile) -> str:
    """Say where a file went."""
    if sent.stored_as:
        return _("Stored as %(file)s.") % {"file": sent.stored_as}
    return _("Sent to %(people)s.") % {"people": ", ".join(sent.sent_to)}


def _attempt(sent: SentFile, draft: ScheduleDraft, *, maker: User, gives_up: bool) -> None:
    """Make and send a file, and note how that went.

    Args:
        gives_up: whether nobody tries again by themselves.
    """
    fault = ""
    sent.attempts += 1
    sent.save(update_fields=_OF_ATTEMPT)  # before it is tried: a process that dies counts, too
    try:
        # The mail and the result are for others, and state their time zone.
        with override(settings.LANGUAGE_CODE), written_for(None):
            _send(sent, draft, maker)
    except DomainError as error:
        fault = error.message
    except OSError:  # SMTP's and the store's errors are some of these
        logger.warning("audit_schedule_failed", extra={"file": str(sent.pk)}, exc_info=True)
        fault = _("The mail could not be handed over, or the file not be stored.")
    except DatabaseError:
        logger.exception("audit_schedule_failed", extra={"file": str(sent.pk)})
        fault = _("The log could not be read.")
    except Exception:
        logger.exception("audit_schedule_crashed", extra={"file": str(sent.pk)})
        fault = _("It could not be made.")
    sent.fault = fault[:500]
    if not fault:
        sent.status, sent.sent_at = _Status.SENT, database_now()
    else:
        sent.status = _Status.FAILED if gives_up or _is_stopped(sent) else _Status.WAITING
    sent.save(update_fields=_OF_ATTEMPT)


def _is_stopped(sent: SentFile) -> bool:
    """Whether the schedule was paused or deleted while the file was made."""
    rows = ReportSchedule.objects.for_workspace(sent.workspace_id)
    return not rows.filter(is_active=True, sent_files=sent.pk).exists()


def _send(sent: SentFile, draft: ScheduleDraft, maker: User) -> None:
    workspace = sent.workspace
    actor = may_export(maker, workspace)
    if actor is None:
        raise InvalidInput(
            _("%(email)s made this schedule, and may no longer export the log.")
            % {"email": maker.email}
        )
    rows = User.objects.filter(pk__in=draft.recipients).order_by("email")
    to = [user.email for user in rows if may_export(user, workspace)]
    by_mail = draft.delivery == ReportSchedule.Delivery.MAIL
    if by_mail and not to:
        raise InvalidInput(_("None of the recipients may export the log any more. Choose others."))
    record_export(
        actor=actor,
        workspace_id=workspace.pk,
        format_name=sent.format,
        wanted=filter_of_file(sent, now=database_now()),
        schedule=sent.name,
        to=to if by_mail else ["file store"],
        sent_file=str(sent.pk),
    )
    name = making.name_of_file(sent)
    with tempfile.TemporaryDirectory(prefix="trellis-report-") as folder:
        path = Path(folder) / name
        with path.open("wb") as file:
            for piece in making.write(sent, actor=actor):
                file.write(piece)
                if by_mail and file.tell() > MOST_MAILED:
                    raise InvalidInput(
                        _(
                            "The file is too large for a mail (15 MB). Narrow the filters, or store the file instead."
                        )
                    )
        numbers = making.count(making.rows_of(sent, actor=actor))
        sent.entries, sent.calls, sent.size = numbers.entries, numbers.calls, path.stat().st_size
        if by_mail:
            _mail(sent, draft, path, to, numbers, made_by=maker.email)
            sent.sent_to = to
            return
        with path.open("rb") as file:
            sent.stored_as = storages["audit_reports"].save(f"{workspace.slug}/{name}", File(file))


def _mail(
    sent: SentFile,
    draft: ScheduleDraft,
    path: Path,
    to: list[str],
    numbers: making.FileCounts,
    *,
    made_by: str,
) -> None:
    mail = making.mail_of(sent, draft, numbers, link=public_url(path_of(sent)), made_by=made_by)
    message = compose(
        subject=mail.subject,
        text=mail.text,
        to=to,
        # The same at each attempt, so that whoever gets it twice can tell.
        message_id=str(sent.pk),
    )
    kind = SCHEDULED[sent.format][1].partition(";")[0]
    message.attach(path.name, path.read_bytes(), kind)
    message.send()
