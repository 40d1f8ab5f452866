"""Checks of a bud, from their start to their results."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from chat.models import BudCheck, CheckResult, CheckRun, Turn
from chat.services.check_runs import advance_all, start_run
from chat.services.checks import add_check
from tests.chat.conftest import ENDED, Chat, Watching
from tests.factories import Tenant


def check(chat: Chat, question: str = "Say hi", **expected: Any) -> BudCheck:
    """A check of the chat's bud."""
    expected = expected or {"contains": ["hi"]}
    values = {"question": question, **expected}
    return add_check(bud=chat.bud, values=values, actor=chat.tenant.actor("admin"))


def begin(chat: Chat, **more: Any) -> CheckRun:
    """Run the checks as the administrator."""
    tenant = chat.tenant
    return start_run(bud=chat.bud, person=tenant.admin, actor=tenant.actor("admin"), **more)


def finish(chat: Chat, run: CheckRun) -> CheckRun:
    """Take a run to its end, as the tasks do after each turn."""
    while run.status == "running":
        for result in results(run):
            if result.status == "running" and result.conversation_id is not None:
                wait_for_turn(result.conversation_id, run)
        advance_all(chat.tenant.workspace.pk)
        run.refresh_from_db()
    return run


def wait_for_turn(conversation_id: UUID, run: CheckRun) -> None:
    watching = Watching(conversation_id)
    turns = Turn.objects.for_workspace(run.workspace_id).filter(conversation_id=conversation_id)
    is_late = CheckResult.objects.for_workspace(run.workspace_id).filter(
        conversation_id=conversation_id, begun_at__lt=timezone.now() - timedelta(minutes=30)
    )
    if turns.exclude(status__in=ENDED).exists() and not is_late.exists():
        watching.turn(*ENDED)
    watching.close()


def results(run: CheckRun) -> list[CheckResult]:
    """How each check went, in order."""
    return list(CheckResult.objects.for_workspace(run.workspace_id).filter(run=run).order_by("id"))


def run_one(chat: Chat, **more: Any) -> CheckResult:
    """Run the only check there is."""
    return results(finish(chat, begin(chat, **more)))[0]


def head_of(tenant: Tenant) -> dict[str, str]:
    return {"X-Workspace": tenant.workspace.slug}
