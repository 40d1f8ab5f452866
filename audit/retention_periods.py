"""How long the log's helpers, and the tables that all apps share, are kept."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from audit.alerts import delivery, evaluation, notices
from audit.retention.periods import RetentionPeriod, in_days, in_hours
from audit.reviews import sent_files
from workspaces import tasks


def list_periods() -> Sequence[RetentionPeriod]:
    """Alerts, the bell, repeated requests, sessions and the admin's own history."""
    return (
        RetentionPeriod(what=_("Alerts that have ended"), how_long=in_days(evaluation.KEEP_DAYS)),
        RetentionPeriod(what=_("Messages sent for alerts"), how_long=in_days(delivery.KEEP_DAYS)),
        RetentionPeriod(
            what=_("What schedules have sent"),
            how_long=_("%(days)s, or as long as the log itself if that is shorter")
            % {"days": in_days(sent_files.KEEP_DAYS)},
        ),
        RetentionPeriod(what=_("Notices in the bell"), how_long=in_days(notices.KEEP_DAYS)),
        RetentionPeriod(
            what=_("Answers to repeated API requests"),
            how_long=in_hours(tasks.KEEP_ANSWERS),
        ),
        RetentionPeriod(
            what=_("History of pages in the admin"), how_long=in_days(tasks.KEEP_ADMIN_HISTORY.days)
        ),
        RetentionPeriod(
            what=_("Sessions"), how_long=_("Until they run out or the person signs out")
        ),
    )
