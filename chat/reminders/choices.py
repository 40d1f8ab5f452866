"""When and whether somebody is reminded by mail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings

from chat.models import ReminderChoice
from workspaces.actors import Actor
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import User, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderDraft:
    """What a form or a program chose."""

    mail_after: int
    quiet_from: time | None = None
    quiet_to: time | None = None
    time_zone: str = "UTC"


@cache
def time_zones() -> tuple[str, ...]:
    """The names of all time zones, as browsers tell them too."""
    return tuple(sorted(available_timezones()))


def choice_of(*, workspace: Workspace, person: User) -> ReminderChoice:
    """The person's choice, or the one that holds for who has made none (not stored)."""
    rows = ReminderChoice.objects.for_workspace(workspace).filter(owner=person)
    return rows.first() or ReminderChoice(workspace=workspace, owner=person)


def choose(
    *, workspace: Workspace, person: User, draft: ReminderDraft, actor: Actor
) -> ReminderChoice:
    """Keep the person's choice.

    Raises:
        PermissionDenied: it is somebody else's.
        InvalidInput: an unknown delay or time zone, or quiet hours with one end.
    """
    if actor.user_id != person.pk:
        raise PermissionDenied("Only you choose how you are reminded.")
    fields: dict[str, list[str]] = {}
    if draft.mail_after not in ReminderChoice.After.values:
        fields["mail_after"] = ["Choose one of the delays."]
    if draft.time_zone not in time_zones():
        fields["time_zone"] = ["There is no such time zone."]
    if (draft.quiet_from is None) != (draft.quiet_to is None):
        missing = "quiet_to" if draft.quiet_to is None else "quiet_from"
        fields[missing] = ["Quiet hours need a beginning and an end."]
    elif draft.quiet_from is not None and draft.quiet_from == draft.quiet_to:
        fields["quiet_to"] = ["Choose another time: these hours have no length."]
    if fields:
        raise InvalidInput(fields=fields)
    choice, _ = ReminderChoice.objects.for_workspace(workspace).update_or_create(
        workspace=workspace,
        owner=person,
        defaults={
            "mail_after": draft.mail_after,
            "quiet_from": draft.quiet_from,
            "quiet_to": draft.quiet_to,
            "time_zone": draft.time_zone,
        },
    )
    return choice


def is_due(choice: ReminderChoice, *, since: datetime, now: datetime) -> bool:
    """Whether what has waited since then is to be mailed now."""
    if choice.mail_after == ReminderChoice.After.NEVER:
        return False
    has_waited = since <= now - timedelta(minutes=choice.mail_after)
    is_new = choice.told_until is None or since > choice.told_until
    return has_waited and is_new and not is_quiet(choice, now)


def is_quiet(choice: ReminderChoice, now: datetime) -> bool:
    """Whether it is one of the person's quiet hours, by their clock. Hours may go past midnight."""
    start, end = choice.quiet_from, choice.quiet_to
    if start is None or end is None:
        return False
    here = now.astimezone(_zone(choice.time_zone)).time()
    return start <= here < end if start < end else here >= start or here < end


def can_mail() -> bool:
    """Whether this installation sends mails at all."""
    return settings.TRELLIS.email_host is not None


def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name if name in time_zones() else "UTC")
