"""Plans by which checks run, and their moments."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from chat.models import CheckPlan, Repeat
from chat.services.check_plans import Schedule, change_plan
from tests.chat.conftest import Chat


def plan(chat: Chat, every: Repeat = Repeat.DAY) -> CheckPlan:
    """Have the checks of the chat's bud run by themselves with the administrator's rights."""
    tenant = chat.tenant
    schedule = Schedule(every, tenant.admin)
    return change_plan(bud=chat.bud, actor=tenant.actor("admin"), schedule=schedule)


def come_due(chat: Chat) -> None:
    rows = CheckPlan.objects.for_workspace(chat.tenant.workspace)
    rows.update(next_at=timezone.now() - timedelta(minutes=1))
