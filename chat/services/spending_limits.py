"""Setting spending limits: of a workspace, of all its members, and of single ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import MemberSpendingLimit, MonthlySpending, SpendingPolicy
from chat.models.spending import USUAL_WARNING
from chat.providers.base import MonthLimit
from chat.providers.months import current_month
from chat.providers.spending_months import policy_of
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.database import database_now
from workspaces.errors import InvalidInput, NotFound
from workspaces.models import Membership, User, Workspace
from workspaces.roles import Permission, require
from workspaces.words.formats import time_zones

KEEP_MONTHS: Final = 36
"""Sums of earlier months are kept for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsDraft:
    """What the limits of a workspace shall be."""

    workspace: MonthLimit = field(default_factory=MonthLimit)
    member: MonthLimit = field(default_factory=MonthLimit)
    """Of each member who has no limit of their own."""
    warn_percent: int = USUAL_WARNING
    time_zone: str = ""
    """Empty: UTC."""


def set_limits(*, workspace: Workspace, draft: LimitsDraft, actor: Actor) -> SpendingPolicy:
    """Set the limits of a workspace. They hold from the next request to a model on.

    Raises:
        PermissionDenied: the actor may not manage members.
        InvalidInput: with each faulty field.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    with transaction.atomic():
        _come_one_after_another(workspace.pk)
        row = policy_of(workspace.pk)
        _put(
            row,
            actor,
            cost=draft.workspace.cost,
            tokens=draft.workspace.tokens,
            member_cost=draft.member.cost,
            member_tokens=draft.member.tokens,
            warn_percent=draft.warn_percent,
            time_zone=_zone(draft.time_zone),
        )
        tell_anew(workspace.pk)
    return row


def set_member_limit(
    *, workspace: Workspace, person: User, limit: MonthLimit, actor: Actor
) -> MemberSpendingLimit:
    """Give one member a limit of their own: another one than all have, or none.

    Raises:
        PermissionDenied, InvalidInput: as above.
        NotFound: they are no member.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    with transaction.atomic():
        _come_one_after_another(workspace.pk)
        _must_be_member(workspace.pk, person.pk)
        _make_policy(workspace.pk, actor)
        rows = MemberSpendingLimit.objects.for_workspace(workspace.pk)
        row = rows.filter(person=person).first() or MemberSpendingLimit(
            workspace_id=workspace.pk, person=person
        )
        _put(row, actor, cost=limit.cost, tokens=limit.tokens)
        tell_anew(workspace.pk, person.pk)
    return row


def remove_member_limit(*, workspace: Workspace, person: User, actor: Actor) -> None:
    """From now on the limit of all members holds for this one, too; nothing changes where it does.

    Raises:
        PermissionDenied: as above.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    with transaction.atomic():
        _come_one_after_another(workspace.pk)
        row = MemberSpendingLimit.objects.for_workspace(workspace.pk).filter(person=person).first()
        if row is not None:
            record_deleted(row, actor=actor)
            row.delete()
            tell_anew(workspace.pk, person.pk)


def forget_limit_of(workspace_id: UUID, user_id: UUID) -> None:
    """A membership has ended. What the person spent stays, so coming back is no new month."""
    rows = MemberSpendingLimit.objects.for_workspace(workspace_id)
    rows.filter(person_id=user_id).delete()


def forget_old_months() -> int:
    """Delete sums of months that are long over; gives how many."""
    now = database_now()
    oldest = now.year * 12 + now.month - 1 - KEEP_MONTHS
    key = oldest // 12 * 100 + oldest % 12 + 1
    return int(MonthlySpending.objects.across_workspaces().filter(month__lt=key).delete()[0])


def _come_one_after_another(workspace_id: UUID) -> None:
    """Two who set limits for the first time at one moment make one row."""
    Workspace.objects.select_for_update(no_key=True).only("pk").get(pk=workspace_id)


def _must_be_member(workspace_id: UUID, user_id: UUID) -> None:
    if not Membership.objects.also_suspended(workspace_id).filter(user_id=user_id).exists():
        raise NotFound(_("This person is no member of this workspace."))


def _make_policy(workspace_id: UUID, actor: Actor) -> None:
    """The policy's row, made if there is none: by it, requests know that limits are to be looked up."""
    row = policy_of(workspace_id)
    if row._state.adding:
        row.save(force_insert=True)
        record_created(row, actor=actor)


def _zone(name: str) -> str:
    if name and name not in time_zones():
        message = _("There is no time zone of this name. Write one such as Europe/Zurich.")
        raise InvalidInput(fields={"time_zone": [message]})
    return "" if name == "UTC" else name


def _put(row: SpendingPolicy | MemberSpendingLimit, actor: Actor, **values: Any) -> None:
    """Give a row these values, with an entry in the log.

    Raises:
        InvalidInput: with each faulty field.
    """
    before = {name: getattr(row, name) for name in values}
    is_new = row._state.adding
    if not is_new and before == values:
        return
    for name, value in values.items():
        setattr(row, name, value)
    try:
        row.clean_fields(
            exclude={field.name for field in row._meta.fields if field.name not in values}
        )
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    if is_new:
        row.save(force_insert=True)
        record_created(row, actor=actor)
        return
    with tracked_change(row, actor=actor):
        row.save(update_fields=[*values, "updated_at"])


def tell_anew(workspace_id: UUID, subject: UUID | None = None) -> None:
    """Of another limit people are told anew in this month.

    Args:
        subject: whose it is; None: everybody's, and the workspace's.
    """
    month = current_month(policy_of(workspace_id).time_zone)
    rows = MonthlySpending.objects.for_workspace(workspace_id).filter(
        month=month.key, told_percent__gt=0
    )
    (rows if subject is None else rows.filter(subject=subject)).update(told_percent=0)
