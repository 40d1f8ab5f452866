"""Finding whom to remind: people for whom something has waited for as long as they chose."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from chat.models import ReminderChoice, ReminderMail
from chat.reminders.choices import can_mail, is_due
from chat.reminders.digest import LONGEST, Person, Times, answered_since, waiting_since
from workspaces.database import database_now
from workspaces.models import Membership

About = ReminderChoice.About
_CAN_ENTER: Final = Q(user__is_active=True, workspace__is_active=True)
SHORTEST: Final = timedelta(
    minutes=min(one for one in ReminderChoice.After.values if one != ReminderChoice.After.NEVER)
)


def find_reminders() -> int:
    """Put a mail into the outbox for everybody who is to be reminded now; returns how many."""
    if not can_mail():
        return 0
    now = database_now()
    found = {
        About.WAITING: waiting_since(None, now - SHORTEST),
        About.ANSWERS: answered_since(now - LONGEST, now - SHORTEST, _wants_answers),
    }
    return sum(
        _remind(choice, since[key], now, about)
        for about, since in found.items()
        for key, choice in choices_of_members(since, have_address=True).items()
    )


def _wants_answers(owner: str, since: str) -> Exists:
    """Whether a person wants mails about answers, and was not mailed about this one."""
    rows = ReminderChoice.objects.across_workspaces().filter(
        Q(answers_told_until=None) | Q(answers_told_until__lt=OuterRef(since)),
        workspace_id=OuterRef("workspace_id"),
        owner_id=OuterRef(owner),
        answers_after__gt=ReminderChoice.After.NEVER.value,
    )
    return Exists(rows)


def may_hear(workspace_id: UUID, person_id: UUID) -> bool:
    """Whether a person can still enter, when what was found for them leaves."""
    rows = Membership.objects.for_workspace(workspace_id)
    return rows.filter(_CAN_ENTER, user_id=person_id).exists()


def choices_of_members(people: Times, *, have_address: bool) -> dict[Person, ReminderChoice]:
    """The choices of those among these people who are members.

    Args:
        have_address: only of those whose address is known to be theirs.
    """
    found = Membership.objects.across_workspaces().filter(
        _CAN_ENTER,
        workspace_id__in={workspace_id for workspace_id, _ in people},
        user_id__in={user_id for _, user_id in people},
    )
    if have_address:
        found = found.filter(user__is_address_confirmed=True)
    members = found.values_list("workspace_id", "user_id")
    chosen = (
        ReminderChoice.objects.across_workspaces()
        .filter(owner_id__in={user_id for _, user_id in people})
        .select_related("owner")
    )
    kept = {(one.workspace_id, one.owner_id): one for one in chosen}
    return {
        key: kept.get(key) or ReminderChoice(workspace_id=key[0], owner_id=key[1])
        for key in members
        if key in people
    }


@transaction.atomic
def _remind(
    choice: ReminderChoice, since: list[datetime], now: datetime, about: ReminderChoice.About
) -> bool:
    """Store one mail for all that is due; no second process stores the same."""
    due = [one for one in since if is_due(choice, since=one, now=now, about=about)]
    if not due:
        return False
    rows = ReminderChoice.objects.for_workspace(choice.workspace_id)
    # Who never chose gets the row that says what they were told of.
    rows.get_or_create(workspace_id=choice.workspace_id, owner_id=choice.owner_id)
    field = "told_until" if about == About.WAITING else "answers_told_until"
    mine = rows.filter(owner_id=choice.owner_id, **{field: choice.told_at(about)})
    if not mine.update(**{field: max(due)}):
        return False
    ReminderMail.objects.create(
        workspace_id=choice.workspace_id,
        owner_id=choice.owner_id,
        about=about,
        since=min(due),
        until=max(due),
        next_attempt_at=now,
    )
    return True
