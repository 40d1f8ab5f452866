"""What a bud demands before a change is saved: that its checks have passed with just that change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, TypeGuard

from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from chat.check_shapes import CheckShape
from chat.models import Bud, BudCheck, CheckPlan, CheckRun, RunStatus
from workspaces.actors import Actor
from workspaces.errors import Conflict

_ANSWERED_BY: Final = (
    "system_prompt",
    "model",
    "tool_protocol",
    "makes_artifacts",
    "takes_all_tools",
)


class ChecksNotPassed(Conflict):
    """A bud takes a change only after its checks have passed with it, and they have not."""

    code = "checks_not_passed"


def shapes_of(bud: Bud) -> list[CheckShape]:
    """Give what a bud's checks ask and expect."""
    rows = BudCheck.objects.for_workspace(bud.workspace_id)
    return [check.shape for check in rows.of(bud)]


def answered_by(bud: Bud) -> dict[str, Any]:
    """All that a bud's answers depend on, in one form. A name, a colour or who may use it changes no answer.

    Raises:
        InvalidInput: what is stored fits its schema no more.
    """
    values: dict[str, Any] = {name: getattr(bud, name) for name in _ANSWERED_BY}
    values["provider"] = str(bud.provider_id or "")
    values["parameters"] = bud.model_parameters.model_dump(mode="json")
    values["tools"] = bud.mcp.model_dump(mode="json")
    return values


def digest_of(bud: Bud, shapes: Sequence[CheckShape]) -> str:
    """Name what a run has checked: all that answers depend on, and the checks. Other values have another digest."""
    values = answered_by(bud)
    values["checks"] = sorted(shape.model_dump_json() for shape in shapes)
    text = json.dumps(values, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def demands_checks(bud: Bud, shapes: Sequence[CheckShape]) -> bool:
    """Whether a change has to pass checks: somebody chose it, and there are some."""
    if not shapes:
        return False
    plans = CheckPlan.objects.for_workspace(bud.workspace_id)
    return bool(plans.filter(bud=bud, before_saving=True).exists())


def newest_run(bud: Bud, digest: str) -> CheckRun | None:
    """Give the newest run of just this that was not cancelled."""
    rows = CheckRun.objects.for_workspace(bud.workspace_id).filter(bud=bud, checked=digest)
    found: CheckRun | None = rows.exclude(status=RunStatus.CANCELLED.value).order_by("-id").first()
    return found


def has_passed(run: CheckRun | None) -> TypeGuard[CheckRun]:
    """Whether a run has ended, and every check passed."""
    return run is not None and run.status == RunStatus.COMPLETED and run.passed == run.total


def let_through(
    bud: Bud,
    *,
    shapes: Sequence[CheckShape] | None,
    restored: int | None,
    is_skipped: bool,
    actor: Actor,
) -> None:
    """Let a change of a bud through, if the bud demands nothing, or gets what it demands. In the caller's transaction.

    The run that let a version through belongs to that version from then on.

    Args:
        bud: as it is about to be saved, with the number of its new version.
        shapes: the checks that it will have; None: those that it has.
        restored: a version that comes back; if all its checks passed then, it may.
        is_skipped: let it through anyway; the log says so.

    Raises:
        ChecksNotPassed: says how far its checks are, and what to do.
    """
    shapes = shapes or shapes_of(bud)
    if not demands_checks(bud, shapes):
        return
    run = newest_run(bud, digest_of(bud, shapes))
    if has_passed(run):
        rows = CheckRun.objects.for_workspace(bud.workspace_id)
        rows.filter(pk=run.pk, version=None).update(version=bud.version)
    elif restored is not None and has_passed(_newest_of_version(bud, restored)):
        return
    elif is_skipped:
        _record_unchecked(bud, run, actor)
    else:
        raise ChecksNotPassed(_why(bud, run))


def _record_unchecked(bud: Bud, run: CheckRun | None, actor: Actor) -> None:
    ended = run if run is not None and run.status == RunStatus.COMPLETED else None
    record(
        EntryDraft(
            action=Action.BUD_UNCHECKED,
            actor=actor,
            workspace_id=bud.workspace_id,
            bud=Ref(id=bud.pk, name=bud.name),
            details={
                "version": bud.version,
                "run": str(ended.pk) if ended else None,
                "passed": ended.passed if ended else None,
                "total": ended.total if ended else None,
            },
        )
    )


def _newest_of_version(bud: Bud, number: int) -> CheckRun | None:
    rows = CheckRun.objects.for_workspace(bud.workspace_id).filter(bud=bud, version=number)
    found: CheckRun | None = rows.filter(status=RunStatus.COMPLETED.value).order_by("-id").first()
    return found


def _why(bud: Bud, run: CheckRun | None) -> str:
    name = {"name": bud.name}
    if run is None:
        return (
            _(
                "“%(name)s” takes a change only after its checks have passed with it. Run them with this change first."
            )
            % name
        )
    if run.status == RunStatus.RUNNING:
        return (
            _(
                "The checks of “%(name)s” are running with this change. Save it when they have passed."
            )
            % name
        )
    return _(
        "Only %(passed)s of %(total)s checks of “%(name)s” passed with this change. Correct it and run them again."
    ) % {**name, "passed": run.passed, "total": run.total}
