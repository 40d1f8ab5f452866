"""What a schedule would send, told before it is made: by the code that makes the file and its mail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.urls import reverse
from django.utils.translation import gettext as _

from audit.exports.formats import Sample
from audit.exports.pdf import PdfFigure
from audit.reviews import making
from audit.reviews.schedules import ScheduleDraft, faults_of
from audit.reviews.stored_filters import log_query
from workspaces.database.time_limits import TookTooLong, at_most
from workspaces.delivery.mails import public_url
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import Workspace

MOST_COUNTED: Final = 100_000
"""Entries; a preview says "more than" beyond that."""
MOST_SHOWN: Final = 5
"""Entries of the file that a preview shows."""
LONGEST_CELL: Final = 200
SECONDS: Final = 10
"""For which the database looks at most; whoever waits for a page has no use for more."""
_NOT_YET = frozenset({"name", "recipients"})
"""What a person may still leave open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPreview:
    """The file that would have been made last, and its mail."""

    since: datetime
    until: datetime
    days: str
    next_runs: Sequence[datetime]
    entries: int
    calls: int | None
    """None: there are too many entries to count them."""
    is_more: bool
    """There are more entries than could be counted."""
    in_words: str
    file_name: str
    sample: Sample
    figures: Sequence[PdfFigure]
    """At the head of a report, which has no rows."""
    size: int | None
    """In bytes, guessed from the first entries; None where that says nothing."""
    most_size: int
    subject: str
    text: str
    log_query: str
    """Of the log's page with these entries."""

    @property
    def next_run_at(self) -> datetime:
        """When the first one is made."""
        return self.next_runs[0]

    @property
    def is_too_large(self) -> bool:
        """Whether the file would probably be too large for a mail."""
        return self.size is not None and self.size > self.most_size


def preview_schedule(
    *, workspace: Workspace, actor: Actor, draft: ScheduleDraft, now: datetime
) -> ReportPreview:
    """Say what the newest file of such a schedule would hold. Nothing is made or sent.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: with what is wrong at which field; or it would take too long to look.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    found = faults_of(draft, workspace_id=workspace.pk, now=now)
    faults = {name: texts for name, texts in found.items() if name not in _NOT_YET}
    if faults:
        raise InvalidInput(fields=faults)
    sent = making.file_of(draft, workspace, now)
    try:
        with at_most(SECONDS):
            rows = making.rows_of(sent, actor=actor)
            numbers = making.count(rows, most=MOST_COUNTED)
            sample = making.begin(sent, actor=actor, number=MOST_SHOWN)
            figures = making.figures_of(sent, actor=actor)
    except TookTooLong as error:
        message = _("Looking took too long. Narrow the filters; the file itself may take longer.")
        raise InvalidInput(fields={"query": [message]}) from error
    # The page of the file that is not made yet.
    link = public_url(reverse("audit:entries", args=[workspace.slug])) + "sent/…"
    mail = making.mail_of(sent, draft, numbers, link=link, made_by=actor.label)
    shown = min(numbers.entries, MOST_SHOWN)
    size = None
    if sample.size and shown:
        size = sample.head_size + sample.size * numbers.entries // shown
    return ReportPreview(
        since=sent.since,
        until=sent.until,
        days=making.days_of(sent),
        next_runs=draft.next_runs(now),
        entries=numbers.entries,
        calls=numbers.calls,
        is_more=numbers.is_more,
        in_words=making.numbers_in_words(numbers),
        file_name=making.name_of_file(sent),
        sample=_cut(sample),
        figures=figures,
        size=size,
        most_size=making.MOST_MAILED,
        subject=mail.subject,
        text=mail.text,
        log_query=log_query(sent.query, sent.since, sent.until),
    )


def _cut(sample: Sample) -> Sample:
    """Show the beginning of long values."""
    return replace(
        sample,
        rows=[[_begin(cell) for cell in row] for row in sample.rows],
        lines=[_begin(line, 10 * LONGEST_CELL) for line in sample.lines],
    )


def _begin(text: str, longest: int = LONGEST_CELL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
