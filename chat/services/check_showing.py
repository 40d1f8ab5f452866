"""Runs of checks as people may read them: verdicts for all who may edit the bud, contents for few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from chat.engine.counting import COUNTED
from chat.models import Bud, BudCheck, CheckPlan, CheckResult, CheckRun, RunStatus
from workspaces.actors import Actor
from workspaces.roles import Permission, has_permission


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCount:
    """How many checks of a version passed when they were last run to the end."""

    passed: int
    total: int

    @property
    def is_all(self) -> bool:
        return self.passed == self.total


def check_json(check: BudCheck) -> dict[str, Any]:
    """A check as REST and the editor show it."""
    return {
        "id": str(check.pk),
        "bud_id": str(check.bud_id),
        "version": check.version,
        **check.shape.model_dump(mode="json"),
    }


def may_read_contents(run: CheckRun, actor: Actor) -> bool:
    """Whether somebody may read answers and results: they were made with the rights of whoever ran the checks."""
    if run.person_id is not None and run.person_id == actor.user_id:
        return True
    return has_permission(actor, Permission.VIEW_AUDIT_BODIES, workspace_id=run.workspace_id)


def run_json(run: CheckRun, actor: Actor, *, with_results: bool = False) -> dict[str, Any]:
    """Give a run; its person is loaded."""
    may_read = may_read_contents(run, actor)
    rows: list[CheckResult] = []
    if with_results:
        found = CheckResult.objects.for_workspace(run.workspace_id).filter(run=run)
        rows = list(found.order_by("id"))
    return {
        "id": str(run.pk),
        "bud_id": str(run.bud_id),
        "version": run.version,
        "status": run.status,
        "note": run.note,
        "total": run.total,
        "passed": run.passed,
        "person": run.person.email if run.person else "",
        "is_scheduled": run.is_scheduled,
        "may_read": may_read,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "usage": _usage_of(rows) if with_results else None,
        "results": [_result_json(row, may_read) for row in rows] if with_results else None,
    }


def _usage_of(rows: Sequence[CheckResult]) -> dict[str, Any] | None:
    """What a run has used, as it is told of an answer; None: nothing yet."""
    tokens = {name: sum(getattr(row, name) for row in rows) for name in COUNTED}
    costs = [row.cost for row in rows if row.cost is not None]
    return {**tokens, "cost": str(sum(costs)) if costs else None} if any(tokens.values()) else None


def plan_json(plan: CheckPlan) -> dict[str, Any]:
    """When a bud's checks run by themselves; its person is loaded."""
    return {
        "before_saving": plan.before_saving,
        "every": plan.every,
        "person": plan.person.email if plan.person else "",
        "next_at": plan.next_at,
        "trouble": plan.trouble,
    }


def runs_of(bud: Bud) -> QuerySet[CheckRun]:
    """Give a bud's runs, the newest first, with whose they are."""
    rows = CheckRun.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    return rows.select_related("person").order_by("-id")


def passed_of_versions(bud: Bud) -> dict[int, PassCount]:
    """Give how each version did when it was last checked to the end."""
    rows = CheckRun.objects.for_workspace(bud.workspace_id).filter(
        bud=bud, status=RunStatus.COMPLETED.value, version__isnull=False
    )
    found: dict[int, PassCount] = {}
    for version, passed, total in rows.order_by("id").values_list("version", "passed", "total"):
        if version is not None:
            found[version] = PassCount(passed=passed, total=total)
    return found


def _result_json(row: CheckResult, may_read: bool) -> dict[str, Any]:
    calls = [
        {
            "call_id": call["call_id"],
            "tool": f"{call['server']}.{call['tool']}" if call["server"] else call["tool"],
            "status": call["status"],
            "is_recorded": call["is_recorded"],
            "arguments": call["arguments"] if may_read else None,
            "result": call["result"] if may_read else None,
        }
        for call in row.calls
    ]
    return {
        "id": str(row.pk),
        "check_id": str(row.bud_check_id) if row.bud_check_id else None,
        "question": row.expected["question"],
        "status": row.status,
        "faults": row.faults,
        "notes": row.notes,
        "answer": row.answer if may_read else None,
        "judged": row.judged if may_read else None,
        "calls": calls,
    }
