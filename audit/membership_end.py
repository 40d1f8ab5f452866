"""When a membership ends, the person's scheduled files stop, and nothing of the log is sent to them any more."""

from __future__ import annotations

from uuid import UUID

from audit.models import AlertRule, Notice, ReportSchedule
from workspaces.changes import ConfigurationChange, tracked_change
from workspaces.models import User


def end_rows_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    """Stop schedules, and take the person out of recipients."""
    Notice.objects.for_workspace(workspace_id).filter(user_id=user_id).delete()
    for schedule in ReportSchedule.objects.for_workspace(workspace_id):
        is_theirs = schedule.made_by_id == user_id
        if not is_theirs and str(user_id) not in schedule.recipients:
            continue
        with tracked_change(schedule, actor=change.actor):
            schedule.recipients = [one for one in schedule.recipients if one != str(user_id)]
            if is_theirs:
                schedule.is_active = False
            schedule.save(update_fields=["recipients", "is_active", "updated_at"])
    address = User.objects.values_list("email", flat=True).get(pk=user_id).lower()
    for rule in AlertRule.objects.for_workspace(workspace_id):
        kept = [one for one in rule.emails if one.lower() != address]
        if kept != rule.emails:
            with tracked_change(rule, actor=change.actor):
                rule.emails = kept
                rule.save(update_fields=["emails", "updated_at"])
