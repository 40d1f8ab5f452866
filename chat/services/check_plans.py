"""When a bud's checks run by themselves: before the editor saves, every day, or every week."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from chat.models import Bud, CheckPlan, Repeat
from chat.services.buds import require_edit
from chat.services.check_notices import tell_person
from chat.services.check_runs import start_run
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, tracked_change
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.jobs.sweeping import sweep
from workspaces.middleware import actor_for
from workspaces.models import User, Workspace

logger = logging.getLogger(__name__)

INTERVALS: Final = {Repeat.DAY.value: timedelta(days=1), Repeat.WEEK.value: timedelta(weeks=1)}
_MOST_AT_ONCE: Final = 50
"""Of one round; the next one begins with those that are left."""
_BUSY_MINUTES: Final = 10
"""Until the next attempt where the checks are running, or a process died before they were begun."""
_PARTED: Final = _(
    "The person who set this schedule may no longer edit the bud. Someone who may edit it can set the schedule again."
)


def plan_of(bud: Bud) -> CheckPlan:
    """Give a bud's plan; where nobody has made one, one that does nothing and is not stored."""
    rows = CheckPlan.objects.for_workspace(bud.workspace_id).select_related("person")
    return rows.filter(bud=bud).first() or CheckPlan(workspace_id=bud.workspace_id, bud=bud)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often checks run by themselves, and with whose rights and accounts."""

    every: Repeat
    person: User


@transaction.atomic
def change_plan(
    *,
    bud: Bud,
    actor: Actor,
    before_saving: bool | None = None,
    schedule: Schedule | None = None,
) -> CheckPlan:
    """Say when a bud's checks run by themselves; None leaves a value as it is.

    Args:
        schedule: the first time is after one interval. What is scheduled so already stays with whoever chose it,
            unless it could not run.

    Raises:
        PermissionDenied: they may not edit the bud.
    """
    require_edit(bud, actor)
    # Two people may choose at once; each waits for the other.
    Bud.objects.for_workspace(bud.workspace_id).select_for_update(of=("self",)).fetch(bud.pk)
    plan = plan_of(bud)
    if plan._state.adding:
        plan.save(force_insert=True)
        record_created(plan, actor=actor)
    with tracked_change(plan, actor=actor):
        if before_saving is not None:
            plan.before_saving = before_saving
        if schedule is not None:
            _schedule(plan, schedule)
        plan.save()
    return plan


def _schedule(plan: CheckPlan, schedule: Schedule) -> None:
    every, person = schedule.every, schedule.person
    if not every:
        plan.person, plan.next_at = None, None
    elif every != plan.every or plan.trouble or plan.person is None:
        plan.person, plan.next_at = person, database_now() + INTERVALS[every]
    plan.every, plan.trouble = every.value, ""


def run_due() -> int:
    """Begin the checks whose time has come; gives how many runs were begun."""
    now = database_now()
    plans = CheckPlan.objects.across_workspaces().filter(next_at__lte=now)
    due = plans.select_related("bud__workspace", "person").order_by("next_at")
    return sweep(due, _run, label="planned_checks", most=_MOST_AT_ONCE)


def stop_plans_of(workspace_id: UUID, user_id: UUID) -> None:
    """Run nothing by itself any more with the rights of somebody who has left. In the caller's transaction."""
    plans = CheckPlan.objects.for_workspace(workspace_id).filter(person_id=user_id)
    plans.update(person=None, next_at=None, trouble=_PARTED)


def _run(plan: CheckPlan) -> bool:
    now = database_now()
    soon = now + timedelta(minutes=_BUSY_MINUTES)
    row = CheckPlan.objects.for_workspace(plan.workspace_id).filter(pk=plan.pk)
    # Whoever moves the time runs it. If they die before the run has begun, another does soon.
    if not row.filter(next_at=plan.next_at).update(next_at=soon):
        return False
    # Somebody may change the plan meanwhile: their time stands.
    mine = row.filter(next_at=soon)
    # What was missed while nothing ran is made up for once.
    following = now + INTERVALS[plan.every]
    bud = plan.bud
    if bud.is_archived or not bud.workspace.is_active:
        mine.update(next_at=following)
        return False
    try:
        person, actor = _person(plan), _actor(plan, bud.workspace)
        with transaction.atomic():
            start_run(bud=bud, person=person, actor=actor, is_scheduled=True)
            mine.update(next_at=following)
            row.update(trouble="")
    except Conflict:
        return False
    except DomainError as error:
        mine.update(next_at=following)
        _note(plan, error)
        return False
    return True


def _person(plan: CheckPlan) -> User:
    if plan.person is None or not plan.person.is_active:
        raise InvalidInput(_PARTED)
    return plan.person


def _actor(plan: CheckPlan, workspace: Workspace) -> Actor:
    actor = actor_for(_person(plan), workspace, source=Source.TASK)
    try:
        require_edit(plan.bud, actor)
    except DomainError as error:
        raise InvalidInput(_PARTED) from error
    return actor


def _words_of(error: DomainError) -> str:
    fields = error.fields if isinstance(error, InvalidInput) else {}
    return " ".join(one for some in fields.values() for one in some) or error.message


def _note(plan: CheckPlan, error: DomainError) -> None:
    """Keep why the checks did not run, and tell whoever chose the schedule, once."""
    trouble = _words_of(error)[:300]
    logger.info("planned_checks_not_run", extra={"bud": str(plan.bud_id), "code": error.code})
    if plan.trouble == trouble:
        return
    with transaction.atomic():
        CheckPlan.objects.for_workspace(plan.workspace_id).filter(pk=plan.pk).update(
            trouble=trouble
        )
        if plan.person_id is not None:
            tell_person(plan.bud, plan.person_id, trouble)
