"""Finding whom to remind: people for whom something has waited for as long as they chose."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from chat.models import ReminderChoice, ReminderMail, ToolCall
from chat.reminders.choices import can_mail, is_due
from chat.values import ToolCallStatus
from mcp_servers.models import InputRequest, InputStatus
from workspaces.database import database_now
from workspaces.models import Membership

MOST_AT_ONCE: Final = 5_000
SHORTEST: Final = timedelta(
    minutes=min(one for one in ReminderChoice.After.values if one != ReminderChoice.After.NEVER)
)
_Person = tuple[UUID, UUID]
"""A workspace, and one of its members."""


def find_reminders() -> int:
    """Put a mail into the outbox for everybody who is to be reminded now; returns how many."""
    if not can_mail():
        return 0
    now = database_now()
    waiting = _waiting(now)
    choices = _choices(waiting)
    return sum(
        _remind(choice, waiting[key], now) for key, choice in choices.items() if key in waiting
    )


def _waiting(now: datetime) -> dict[_Person, list[datetime]]:
    """Since when things wait, oldest first, for each person."""
    calls = ToolCall.objects.across_workspaces().filter(
        Q(approval_expires_at=None) | Q(approval_expires_at__gt=now),
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        created_at__lte=now - SHORTEST,
        turn__conversation__owner_id=F("turn__asked_by_id"),
        turn__conversation__deleted_at=None,
        turn__conversation__bud__is_draft=False,
    )
    asked = InputRequest.objects.across_workspaces().filter(
        status=InputStatus.PENDING.value,
        created_at__lte=now - SHORTEST,
        expires_at__gt=now,
        conversation_id__isnull=False,
    )
    of_calls = calls.order_by("created_at").values_list(
        "workspace_id", "turn__asked_by_id", "created_at"
    )
    of_questions = asked.order_by("created_at").values_list(
        "workspace_id", "asked_of_id", "created_at"
    )
    found: defaultdict[_Person, list[datetime]] = defaultdict(list)
    for workspace_id, user_id, since in [
        *of_calls[:MOST_AT_ONCE],
        *of_questions[:MOST_AT_ONCE],
    ]:
        if user_id is not None:
            found[workspace_id, user_id].append(since)
    return found


def _choices(people: dict[_Person, list[datetime]]) -> dict[_Person, ReminderChoice]:
    """The choices of those who are members and whose address is known to be theirs."""
    members = (
        Membership.objects.across_workspaces()
        .filter(
            workspace_id__in={workspace_id for workspace_id, _ in people},
            user_id__in={user_id for _, user_id in people},
            user__is_active=True,
            user__is_address_confirmed=True,
            workspace__is_active=True,
        )
        .values_list("workspace_id", "user_id")
    )
    chosen = ReminderChoice.objects.across_workspaces().filter(
        owner_id__in={user_id for _, user_id in people}
    )
    kept = {(one.workspace_id, one.owner_id): one for one in chosen}
    return {
        key: kept.get(key) or ReminderChoice(workspace_id=key[0], owner_id=key[1])
        for key in members
    }


@transaction.atomic
def _remind(choice: ReminderChoice, since: list[datetime], now: datetime) -> bool:
    """Store one mail for all that is due; no second process stores the same."""
    due = [one for one in since if is_due(choice, since=one, now=now)]
    if not due:
        return False
    rows = ReminderChoice.objects.for_workspace(choice.workspace_id)
    # Who never chose gets the row that says what they were told of.
    rows.get_or_create(workspace_id=choice.workspace_id, owner_id=choice.owner_id)
    mine = rows.filter(owner_id=choice.owner_id, told_until=choice.told_until)
    if not mine.update(told_until=max(due)):
        return False
    ReminderMail.objects.create(
        workspace_id=choice.workspace_id,
        owner_id=choice.owner_id,
        since=min(due),
        until=max(due),
        next_attempt_at=now,
    )
    return True
