"""When a membership ends, the person's scheduled files stop, and nothing of the log is sent to them any more."""

from __future__ import annotations

from typing import Any

from audit.models import AlertRule, Notice, ReportSchedule
from workspaces.changes import ConfigurationChange, configuration_changed, tracked_change
from workspaces.models import Membership, User
from workspaces.people.memberships import person_parted


def listen_to_leaving() -> None:
    """Called once at start."""
    configuration_changed.connect(
        _membership_changed, sender=Membership, dispatch_uid="audit.membership_end"
    )


def _membership_changed(sender: type[Membership], change: ConfigurationChange, **_: Any) -> None:
    parted = person_parted(change)
    if parted is None:
        return
    workspace_id, user_id = parted
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
