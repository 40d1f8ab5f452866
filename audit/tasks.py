"""What the log needs done in the background."""

from __future__ import annotations

import logging
from typing import Final

from celery import shared_task
from celery.schedules import crontab
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audit import retention, rollups
from audit.alerts import delivery, evaluation, notices
from audit.models import AuditPolicy
from audit.reviews import scheduled_exports, sent_files
from audit.streams import forwarding
from audit.verification import nightly
from workspaces import restore_detection
from workspaces.process.schedules import scheduled

logger = logging.getLogger(__name__)

_ERASURE_SECONDS: Final = 40.0
"""Less than between two runs."""


@shared_task
@scheduled(15, _("Count log entries for reports"))
def count_entries() -> int:
    """Bring the counters behind the reports up to date; gives how many entries were counted."""
    return rollups.roll_up_all()


@shared_task(ignore_result=True)
@scheduled(60, _("Make and send scheduled exports"))
def send_reports() -> None:
    """Make and send scheduled files that are due; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        scheduled_exports.send_due()


@shared_task(ignore_result=True)
@scheduled(crontab(hour=4, minute=17), _("Forget what schedules of the log sent long ago"))
def trim_reports() -> None:
    """Forget what was sent long ago."""
    sent_files.trim_sent_files()


@shared_task(ignore_result=True)
@scheduled(5, _("Send the log to streams"))
def send_streams() -> None:
    """Send sealed entries to their sinks; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        forwarding.send_due()


@shared_task(ignore_result=True)
@scheduled(30, _("Check alert rules"))
def watch_alerts() -> None:
    """Look at every alert rule."""
    evaluation.evaluate_all()


@shared_task(ignore_result=True)
@scheduled(10, _("Send mails and webhooks of alerts"))
def send_alerts() -> None:
    """Send alerts' mails and webhooks; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        delivery.deliver_due()


@shared_task(ignore_result=True)
@scheduled(crontab(minute=51), _("Forget old alerts and notices"))
def trim_alerts() -> None:
    """Forget old alerts, their messages, and old lines of bells."""
    evaluation.trim_alerts()
    delivery.trim_deliveries()
    notices.trim_notices()


@shared_task(ignore_result=True)
@scheduled(crontab(hour=3, minute=11), _("Verify what is new in the log"))
def verify_what_is_new() -> None:
    """Check the part of the log that came since the last check."""
    nightly.verify_log(is_incremental=True)


@shared_task(ignore_result=True)
@scheduled(crontab(day_of_week="sunday", hour=1, minute=23), _("Verify the whole log"))
def verify_the_whole() -> None:
    """Check all of the log."""
    nightly.verify_log(is_incremental=False)


@shared_task(ignore_result=True)
@scheduled(crontab(minute=53), _("Remove log entries that workspaces no longer keep"))
def apply_retention() -> None:
    """Remove what workspaces do not want to keep; not after a restore, before somebody has looked at it."""
    if restore_detection.is_unconfirmed():
        return
    rows = AuditPolicy.objects.across_workspaces().order_by("pk")
    for workspace_id in list(rows.values_list("pk", flat=True)):
        try:
            retention.apply_retention(workspace_id, now=timezone.now())
        except Exception:
            logger.exception("retention failed", extra={"workspace_id": str(workspace_id)})


@shared_task(ignore_result=True)
@scheduled(60, _("Erase what was asked for in the log"))
def continue_erasures() -> None:
    """Go on with erasures that took too long for a page; not after a restore, before somebody has looked at it."""
    if not restore_detection.is_unconfirmed():
        retention.continue_erasures(seconds=_ERASURE_SECONDS)
