"""When and whether somebody is reminded by mail."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from chat.models import ReminderChoice
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import User, Workspace
from workspaces.words.formats import time_zone_of, time_zones

QUIET_PAUSE: Final = timedelta(minutes=10)
"""After so long it is looked whether quiet hours are over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderDraft:
    """What a form or a program chose."""

    mail_after: int
    answers_after: int = ReminderChoice.After.NEVER
    quiet_from: time | None = None
    quiet_to: time | None = None
    time_zone: str | None = None
    """Of the quiet hours, for who has chosen none in their settings; None: as those say, else UTC."""


def choice_of(*, workspace: Workspace, person: User) -> ReminderChoice:
    """The person's choice, or the one that holds for who has made none (not stored)."""
    rows = ReminderChoice.objects.for_workspace(workspace).filter(owner=person)
    choice = rows.first() or ReminderChoice(workspace=workspace)
    choice.owner = person
    return choice


def choose(
    *, workspace: Workspace, person: User, draft: ReminderDraft, actor: Actor
) -> ReminderChoice:
    """Keep the person's choice.

    Raises:
        PermissionDenied: it is somebody else's.
        InvalidInput: an unknown delay or time zone, or quiet hours with one end.
    """
    if actor.user_id != person.pk:
        raise PermissionDenied(_("Only you can choose how you are reminded."))
    fields: dict[str, list[str]] = {}
    for name in ("mail_after", "answers_after"):
        if getattr(draft, name) not in ReminderChoice.After.values:
            fields[name] = [_("Choose one of the delays.")]
    chosen = person.time_zone
    time_zone = draft.time_zone or chosen or "UTC"
    if time_zone not in time_zones():
        fields["time_zone"] = [_("There is no such time zone.")]
    elif chosen and time_zone != chosen:
        fields["time_zone"] = [
            _("Your settings say %(time_zone)s. Change it there, under “Time and formats”.")
            % {"time_zone": chosen}
        ]
    if (draft.quiet_from is None) != (draft.quiet_to is None):
        missing = "quiet_to" if draft.quiet_to is None else "quiet_from"
        fields[missing] = [_("Quiet hours need a beginning and an end.")]
    elif draft.quiet_from is not None and draft.quiet_from == draft.quiet_to:
        fields["quiet_to"] = [
            _("Choose another end. The quiet hours begin and end at the same time.")
        ]
    if fields:
        raise InvalidInput(fields=fields)
    values = {**asdict(draft), "time_zone": time_zone}
    before = choice_of(workspace=workspace, person=person).answers_after
    if before == ReminderChoice.After.NEVER != draft.answers_after:
        # From now on: nobody who switches it on wants mails about the answers of the last days.
        values["answers_told_until"] = database_now()
    choice, _created = ReminderChoice.objects.for_workspace(workspace).update_or_create(
        workspace=workspace, owner=person, defaults=values
    )
    choice.owner = person
    return choice


def is_due(
    choice: ReminderChoice,
    *,
    since: datetime,
    now: datetime,
    about: ReminderChoice.About = ReminderChoice.About.WAITING,
) -> bool:
    """Whether what has waited, or is unseen, since then is to be mailed now."""
    after, told_at = choice.after(about), choice.told_at(about)
    if after == ReminderChoice.After.NEVER:
        return False
    has_waited = since <= now - timedelta(minutes=after)
    return has_waited and (told_at is None or since > told_at) and not is_quiet(choice, now)


def is_quiet(choice: ReminderChoice, now: datetime) -> bool:
    """Whether it is one of the person's quiet hours, by their clock. Hours may go past midnight."""
    start, end = choice.quiet_from, choice.quiet_to
    if start is None or end is None:
        return False
    here = now.astimezone(time_zone_of(choice.zone)).time()
    return start <= here < end if start < end else here >= start or here < end


def until_quiet(choice: ReminderChoice, now: datetime) -> timedelta | None:
    """How long it is until the person's next quiet hours begin, by their clock; None: they have none."""
    if choice.quiet_from is None or choice.quiet_to is None:
        return None
    here = now.astimezone(time_zone_of(choice.zone))
    start = here.replace(
        hour=choice.quiet_from.hour, minute=choice.quiet_from.minute, second=0, microsecond=0
    )
    # Compared in UTC, so that a change of the clock counts.
    if start.astimezone(UTC) <= now:
        start += timedelta(days=1)
    return start.astimezone(UTC) - now


def can_mail() -> bool:
    """Whether this installation sends mails at all."""
    return settings.TRELLIS.email_host is not None
