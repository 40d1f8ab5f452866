"""Views that a schedule can begin with, for people who have saved none; and what a schedule is called if nobody says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.models import ReportSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyView:
    """Filters, as people type them, under a name."""

    key: str
    label: str
    query: str
    help: str


READY: Final = (
    ReadyView(
        key="everything",
        label=gettext_noop("Everything"),
        query="",
        help=gettext_noop("Every entry of the log: calls, approvals, sign-ins and changes."),
    ),
    ReadyView(
        key="calls",
        label=gettext_noop("Tool calls"),
        query="outcome:ended",
        help=gettext_noop("How each call ended, or why it was refused."),
    ),
    ReadyView(
        key="failures",
        label=gettext_noop("Failed calls"),
        query="outcome:failed",
        help=gettext_noop("Calls that ended with an error or ran out of time."),
    ),
    ReadyView(
        key="refused",
        label=gettext_noop("Refused calls"),
        query="outcome:refused",
        help=gettext_noop("Calls that a rule, a limit or a person did not let through."),
    ),
    ReadyView(
        key="changes",
        label=gettext_noop("Changed settings"),
        query="action:config.changed",
        help=gettext_noop("Who changed which setting, member, server, bud or rule."),
    ),
    ReadyView(
        key="approvals",
        label=gettext_noop("Approvals given"),
        query="action:approval.granted",
        help=gettext_noop("Who allowed which call."),
    ),
    ReadyView(
        key="exports",
        label=gettext_noop("Exports of the log"),
        query="action:export.created",
        help=gettext_noop("Who took the log away as a file, by hand or by a schedule."),
    ),
)


def ready_view(key: str) -> ReadyView | None:
    """Give the one with that key."""
    return next((one for one in READY if one.key == key), None)


def usual_name(view: str, cadence: str) -> str:
    """Name a schedule after its view and its time, as "Failed calls, every Monday".

    Args:
        view: the view's name; empty if its filters have none.
    """
    when = dict(ReportSchedule.Cadence.choices).get(cadence, cadence)
    return _("%(view)s, %(when)s") % {
        "view": (view or _("Filtered entries"))[:50],
        "when": when,
    }
