"""A file of the log and its mail, for the real one and for its preview alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, override

from audit.actions import Action
from audit.exports.formats import FORMATS, Sample
from audit.exports.pdf import PdfFigure
from audit.exports.report_files import PDF, filter_lines, report_document, report_pdf
from audit.exports.streams import removals_since
from audit.models import AuditEntry, ReportSchedule, SentFile
from audit.reports.entries import entries_of
from audit.reports.searching import matching
from audit.reviews.schedules import ScheduleDraft
from audit.reviews.sent_files import filter_of_file
from workspaces.database import database_now
from workspaces.words.formats import clock_of_hour, day_in, time_zone_of, whole, written_for

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from workspaces.actors import Actor
    from workspaces.models import Workspace
    from workspaces.scoping import WorkspaceQuerySet

MOST_MAILED: Final = 15 * 1024 * 1024
"""Bytes of a file. Many servers refuse a larger mail."""
_MOMENT: Final = timedelta(microseconds=1)
_ENDED: Final = (Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """What a file holds."""

    entries: int
    calls: int | None
    is_more: bool = False
    """There are more entries than were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportMail:
    """What people read."""

    subject: str
    text: str


def file_of(draft: ScheduleDraft, workspace: Workspace, moment: datetime) -> SentFile:
    """Say what the file of a moment would be. It is stored nowhere yet."""
    since, until = draft.period_before(moment)
    return SentFile(
        workspace=workspace,
        name=draft.name.strip(),
        query=draft.query,
        format=draft.format,
        time_zone=draft.time_zone,
        since=since,
        until=until,
    )


def name_of_file(sent: SentFile) -> str:
    """Name the file by its days."""
    zone = time_zone_of(sent.time_zone)
    first, last = sent.since.astimezone(zone), (sent.until - _MOMENT).astimezone(zone)
    return f"trellis-audit-{sent.workspace.slug}-{first:%Y%m%d}-{last:%Y%m%d}.{sent.format}"


def rows_of(sent: SentFile, *, actor: Actor) -> WorkspaceQuerySet[AuditEntry]:
    """Give the entries of a file.

    Raises:
        PermissionDenied: the actor does not see the log.
    """
    wanted = filter_of_file(sent, now=database_now())
    return matching(entries_of(sent.workspace_id, actor=actor), wanted, actor=actor)


def count(rows: WorkspaceQuerySet[AuditEntry], *, most: int | None = None) -> FileCounts:
    """Count what a file holds.

    Args:
        most: up to where; without it, all.
    """
    plain = rows.order_by().values("pk")
    entries = plain[: most + 1 if most else None].count()
    if most and entries > most:
        return FileCounts(entries=most, calls=None, is_more=True)
    return FileCounts(entries=entries, calls=plain.filter(action__in=_ENDED).count())


def write(sent: SentFile, *, actor: Actor) -> Iterator[bytes]:
    """Give the file piece by piece."""
    if sent.format == PDF:
        yield report_pdf(
            sent.workspace,
            filter_of_file(sent, now=database_now()),
            actor=actor,
            now=database_now(),
            zone=time_zone_of(sent.time_zone),
        )
        return
    removals = removals_since(sent.workspace_id, database_now())
    yield from FORMATS[sent.format].stream(rows_of(sent, actor=actor), removals)


def begin(sent: SentFile, *, actor: Actor, number: int) -> Sample:
    """Give how the file begins; of a report there are no rows."""
    if sent.format == PDF:
        return Sample()
    return FORMATS[sent.format].sample(rows_of(sent, actor=actor), number)


def figures_of(sent: SentFile, *, actor: Actor) -> list[PdfFigure]:
    """Give the numbers at the head of a report; nothing for a file of entries."""
    if sent.format != PDF:
        return []
    now = database_now()
    wanted, zone = filter_of_file(sent, now=now), time_zone_of(sent.time_zone)
    return list(report_document(sent.workspace, wanted, actor=actor, now=now, zone=zone).figures)


def mail_of(
    sent: SentFile, draft: ScheduleDraft, numbers: FileCounts, *, link: str, made_by: str
) -> ReportMail:
    """Say what the mail with a file says, in the installation's language.

    Args:
        link: to the page on which people look through it.
        made_by: who schedules it.
    """
    with override(settings.LANGUAGE_CODE), written_for(None):
        values = {
            "name": _line(sent.name),
            "workspace": _line(sent.workspace.name),
            "period": days_of(sent),
            "zone": sent.time_zone,
            "person": made_by,
            "time": time_in_words(draft),
        }
        sentences = [
            _("Attached is the audit log of %(workspace)s for %(period)s (%(zone)s).") % values
        ]
        sentences[0] += f" {numbers_in_words(numbers)}"
        wanted = filter_lines(filter_of_file(sent, now=sent.until), sent.workspace_id)
        if wanted:
            filters = "; ".join(f"{name}: {_line(value)}" for name, value in wanted)
            sentences.append(_("Filters: %(filters)s") % {"filters": filters})
        sentences.append(
            _("Look through these entries in Trellis, and sign off there:") + f"\n{link}"
        )
        if sent.is_trial:
            sentences.append(_("You sent this to yourself, to see what “%(name)s” sends.") % values)
        else:
            sentences.append(_("%(person)s scheduled “%(name)s”: %(time)s.") % values)
        return ReportMail(
            subject=_("Audit log: %(name)s, %(period)s") % values,
            text="\n\n".join(sentences) + "\n",
        )


def days_of(sent: SentFile) -> str:
    """Write the days of a file, the last one included."""
    return period_in_words(sent.since, sent.until, time_zone_of(sent.time_zone))


def period_in_words(since: datetime, until: datetime, zone: tzinfo) -> str:
    """Write whole days, the last one included."""
    first, last = day_in(since, zone), day_in(until - _MOMENT, zone)
    return first if first == last else _("%(first)s to %(last)s") % {"first": first, "last": last}


def time_in_words(draft: ScheduleDraft) -> str:
    """Write "every Monday at 06:00 (Europe/Zurich)"."""
    return _("%(when)s at %(hour)s (%(zone)s)") % {
        "when": dict(ReportSchedule.Cadence.choices).get(draft.cadence, draft.cadence),
        "hour": clock_of_hour(draft.hour),
        "zone": draft.time_zone,
    }


def numbers_in_words(numbers: FileCounts) -> str:
    """Say in a sentence how much a file holds."""
    if not numbers.entries:
        return _("Nothing in the log fits, so the file holds no entries.")
    entries = ngettext("%(number)s entry", "%(number)s entries", numbers.entries) % {
        "number": whole(numbers.entries)
    }
    if numbers.is_more:
        return _("It holds more than %(entries)s.") % {"entries": entries}
    calls = ngettext("%(number)s tool call", "%(number)s tool calls", numbers.calls or 0) % {
        "number": whole(numbers.calls or 0)
    }
    return _("It holds %(entries)s, with %(calls)s.") % {"entries": entries, "calls": calls}


def _line(text: str) -> str:
    """In one line, whatever somebody has put into a name."""
    return " ".join(text.split())
