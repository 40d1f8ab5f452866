"""How long conversations, and what the chat sends, are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.retention.periods import RetentionPeriod, in_days, in_hours
from chat.reminders import mailing
from chat.services import bud_drafts, person_jobs
from chat.services.check_runs import KEEP_RUNS
from chat.services.conversation_sweeps import temporary_hours
from chat.services.spending_limits import KEEP_MONTHS
from chat.webhooks import delivery


def list_periods() -> Sequence[RetentionPeriod]:
    """Conversations first: everything of theirs goes with them."""
    idle, deleted = (
        settings.TRELLIS.idle_conversation_days,
        settings.TRELLIS.deleted_conversation_days,
    )
    return (
        RetentionPeriod(
            what=_("Conversations, with their messages, calls and files"),
            how_long=_("Until their owner deletes them")
            if idle is None
            else ngettext(
                "%(days)s day after the last message; pinned ones stay",
                "%(days)s days after the last message; pinned ones stay",
                idle,
            )
            % {"days": idle},
            setting="TRELLIS_IDLE_CONVERSATION_DAYS",
        ),
        RetentionPeriod(
            what=_("Deleted conversations, which their owner can bring back"),
            how_long=in_days(deleted) if deleted else _("Erased at once"),
            setting="TRELLIS_DELETED_CONVERSATION_DAYS",
        ),
        RetentionPeriod(
            what=_("Temporary chats, after the last activity in them"),
            how_long=in_hours(timedelta(hours=temporary_hours())),
            setting="TRELLIS_TEMPORARY_CONVERSATION_HOURS",
        ),
        RetentionPeriod(
            what=_("Copies of people's data, which they can download"),
            how_long=in_days(settings.TRELLIS.data_copy_days),
            setting="TRELLIS_DATA_COPY_DAYS",
        ),
        RetentionPeriod(
            what=_("What is told of a copy of somebody's data, after it is made"),
            how_long=in_days(person_jobs.FORGOTTEN_DAYS),
        ),
        RetentionPeriod(
            what=_("What is told of an import of chats, after nothing of it is left"),
            how_long=in_days(person_jobs.FORGOTTEN_DAYS),
        ),
        RetentionPeriod(
            what=_("Test chats of a bud's editor, after their last message"),
            how_long=in_hours(bud_drafts.FORGOTTEN_AFTER),
        ),
        RetentionPeriod(
            what=_("Results of a bud's checks"),
            how_long=ngettext("The last %(runs)s run", "The last %(runs)s runs", KEEP_RUNS)
            % {"runs": KEEP_RUNS},
        ),
        RetentionPeriod(
            what=_(
                "Sums of what models cost, by month and person, also of chats that were deleted"
            ),
            how_long=ngettext("%(months)s month", "%(months)s months", KEEP_MONTHS)
            % {"months": KEEP_MONTHS},
        ),
        RetentionPeriod(what=_("Messages sent to webhooks"), how_long=in_days(delivery.KEEP_DAYS)),
        RetentionPeriod(
            what=_("Reminders sent by mail, and notifications of devices"),
            how_long=in_days(mailing.KEEP_DAYS),
        ),
    )
