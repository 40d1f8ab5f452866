"""Running a bud's checks: each is a turn of a hidden, sandboxed copy of the bud, through the same engine and gate.

The rows say how far a run is. Whoever looks at it takes it further: the request that starts it, the task that the end of
a turn queues, and a scheduled task. Each step is claimed by one conditional update, so that it is done once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from chat.check_shapes import CheckShape
from chat.models import (
    Bud,
    BudCheck,
    CheckResult,
    CheckRun,
    ResultStatus,
    RunStatus,
    Turn,
)
from chat.models.turns import ACTIVE
from chat.services.bud_drafts import forget_tests
from chat.services.bud_versions import free_slug
from chat.services.buds import assign_values, require_edit, values_of
from chat.services.check_collecting import collect, spent_on
from chat.services.check_demands import digest_of
from chat.services.check_notices import tell_of_faults
from chat.services.checks import checks_of
from chat.services.conversations import create_conversation
from chat.services.turns import send_message, stop_turn
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, record_deleted
from workspaces.database import after_commit, database_now
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.jobs.sweeping import sweep
from workspaces.middleware import actor_for
from workspaces.models import User

AT_ONCE: Final = 2
"""Questions of one run that are asked side by side."""
SECONDS_EACH: Final = 180
"""A check that takes longer has failed."""
_SECONDS_TO_JUDGE: Final = 120
KEEP_RUNS: Final = 50
"""Of one bud."""
_MOST_LOOKED_AT: Final = 100
_OPEN: Final = (
    ResultStatus.WAITING.value,
    ResultStatus.RUNNING.value,
    ResultStatus.JUDGING.value,
)
_NO_CHECKS: Final = _("This bud has no checks yet. Add one first.")
_BUSY: Final = _("The checks of this bud are running already. Wait for them, or cancel them.")
_TOO_LONG: Final = gettext_noop("There was no answer within %(minutes)s minutes.") % {
    "minutes": SECONDS_EACH // 60
}
_LOST: Final = gettext_noop("The check was interrupted. Run the checks again.")


def start_run(
    *,
    bud: Bud,
    person: User,
    actor: Actor,
    values: dict[str, Any] | None = None,
    provider_id: UUID | None = None,
    shapes: Sequence[CheckShape] | None = None,
    is_scheduled: bool = False,
) -> CheckRun:
    """Run a bud's checks, with this person's rights and accounts.

    Args:
        values: what stands in the editor; None: the bud as it is saved.
        provider_id: goes with the values.
        shapes: the checks that the bud will have with these values; None: those that it has.
        is_scheduled: nobody waits for the result; the person is told if a check fails.

    Raises:
        PermissionDenied: they may not edit the bud.
        InvalidInput: a value does not fit, or there are no checks.
        Conflict: its checks are running.
    """
    require_edit(bud, actor)
    asked = _asked(bud, shapes)
    if not asked:
        raise InvalidInput(fields={"checks": [_NO_CHECKS]})
    if (
        CheckRun.objects.for_workspace(bud.workspace_id)
        .filter(bud=bud, status=RunStatus.RUNNING.value)
        .exists()
    ):
        raise Conflict(_BUSY)
    try:
        with transaction.atomic():
            draft, is_as_saved = _copy(bud, person, actor, values, provider_id)
            run = CheckRun.objects.create(
                workspace_id=bud.workspace_id,
                bud=bud,
                version=bud.version if is_as_saved else None,
                draft=draft,
                checked=digest_of(draft, [shape for shape, _check in asked]),
                person=person,
                total=len(asked),
                is_scheduled=is_scheduled,
            )
            CheckResult.objects.bulk_create(
                CheckResult(
                    workspace_id=bud.workspace_id,
                    run=run,
                    bud_check=check,
                    expected=shape.model_dump(mode="json"),
                )
                for shape, check in asked
            )
    except IntegrityError as error:
        raise Conflict(_BUSY) from error
    after_commit(advance_run, run)
    run.refresh_from_db()
    return run


def cancel_run(*, run: CheckRun, actor: Actor) -> CheckRun:
    """Stop a run. What has ended keeps its result; a run that is over stays as it is.

    Raises:
        PermissionDenied: the actor may not edit the bud.
    """
    require_edit(run.bud, actor)
    reason = gettext_noop("Cancelled by %(who)s.") % {"who": actor.label}
    _cancel(run, reason[:300])
    run.refresh_from_db()
    return run


def advance_all(workspace_id: UUID | None = None) -> int:
    """Take every run of a workspace, or of all, as far as it can go now; gives how many it advanced."""
    runs = (
        CheckRun.objects.across_workspaces()
        if workspace_id is None
        else CheckRun.objects.for_workspace(workspace_id)
    )
    open_runs = runs.filter(status=RunStatus.RUNNING.value).order_by("id")
    return sweep(open_runs, _advance, label="advance_checks", most=_MOST_LOOKED_AT)


def _advance(run: CheckRun) -> bool:
    advance_run(run)
    return True


def advance_run(run: CheckRun) -> None:
    """Collect the answers that are there, ask what is to be asked next, and end the run after the last."""
    run = (
        _rows(run).select_related("person", "workspace", "draft__provider", "bud__workspace").get()
    )
    if run.status != RunStatus.RUNNING:
        return
    actor = _actor(run)
    if run.draft is None or actor is None:
        _cancel(run, gettext_noop("The person who ran the checks may not edit the bud any more."))
        return
    for result in _results(run).filter(status=ResultStatus.RUNNING.value):
        _look_at(result, run.draft, actor)
    _give_up_judging(run)
    _ask_next(run, run.draft, actor)
    if not _results(run).filter(status__in=_OPEN).exists():
        _finish(run)


def cancel_runs_of(workspace_id: UUID, user_id: UUID) -> None:
    """Begin nothing more for a person who has left; their turns are ended with all others. In the caller's transaction."""
    now = database_now()
    runs = CheckRun.objects.for_workspace(workspace_id).filter(
        person_id=user_id, status=RunStatus.RUNNING.value
    )
    ended = list(runs.values_list("pk", flat=True))
    results = CheckResult.objects.for_workspace(workspace_id).filter(run_id__in=ended)
    results.filter(status__in=_OPEN).update(status=ResultStatus.CANCELLED.value, finished_at=now)
    runs.update(status=RunStatus.CANCELLED.value, finished_at=now)


def _asked(
    bud: Bud, shapes: Sequence[CheckShape] | None
) -> list[tuple[CheckShape, BudCheck | None]]:
    """Give what is asked, each with the bud's check that asks just that."""
    stored = [(check.shape, check) for check in checks_of(bud)]
    if shapes is None:
        return [*stored]
    return [
        (shape, next((check for one, check in stored if one == shape), None)) for shape in shapes
    ]


def _copy(
    bud: Bud, person: User, actor: Actor, values: dict[str, Any] | None, provider_id: UUID | None
) -> tuple[Bud, bool]:
    """Give the bud as it is checked, and whether that is how it is saved."""
    saved = values_of(bud)
    draft = Bud(
        workspace_id=bud.workspace_id,
        is_draft=True,
        is_sandboxed=True,
        owner=person,
        draft_of=bud,
        has_knowledge=bud.has_knowledge,
    )
    if values is None:
        values, provider_id = {}, bud.provider_id
    # What it names was looked at when it was saved, and may be gone by now, as it may be in its chats.
    draft.mcp_config = saved["mcp_config"]
    kept = {name: saved[name] for name in saved if name not in ("provider_id", "mcp_config")}
    slug = free_slug(bud.workspace_id, f"check-{person.pk.hex[-12:]}")
    assign_values(draft, {**kept, **values, "slug": slug}, provider_id)
    draft.slug = saved["slug"]
    is_as_saved = values_of(draft) == saved
    draft.slug = slug
    draft.visibility, draft.is_archived = "owner", False
    draft.save(force_insert=True)
    record_created(draft, actor=actor)
    return draft, is_as_saved


def _actor(run: CheckRun) -> Actor | None:
    """Give the person as they are now; None: they may not do this any more."""
    if run.person is None or not run.person.is_active or not run.workspace.is_active:
        return None
    actor = actor_for(run.person, run.workspace, source=Source.CHAT)
    try:
        require_edit(run.bud, actor)
    except DomainError:
        return None
    return actor


def _look_at(result: CheckResult, draft: Bud, actor: Actor) -> None:
    turns = Turn.objects.for_workspace(result.workspace_id)
    talk_id = result.conversation_id
    turn = turns.filter(conversation_id=talk_id).order_by("-id").first() if talk_id else None
    is_late = result.begun_at is None or database_now() - result.begun_at > timedelta(
        seconds=SECONDS_EACH
    )
    if turn is None:
        if is_late and _claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING):
            _store(result, faults=[_LOST])
        return
    if turn.status in ACTIVE:
        if is_late and _claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING):
            stop_turn(turn=turn, actor=actor)
            _store(result, faults=[_TOO_LONG], **spent_on(turn))
        return
    if _claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING):
        found = collect(result, turn, draft)
        _store(
            result,
            faults=found.faults,
            notes=found.notes,
            answer=found.answer,
            judged=found.judged,
            calls=[call.as_json() for call in found.calls],
            **found.spent,
        )


def _give_up_judging(run: CheckRun) -> None:
    """A process that died while it judged has left its check behind; the claim says since when it judges."""
    oldest = database_now() - timedelta(seconds=_SECONDS_TO_JUDGE)
    left = _results(run).filter(status=ResultStatus.JUDGING.value, updated_at__lt=oldest)
    left.update(status=ResultStatus.FAILED.value, faults=[_LOST], finished_at=database_now())


def _ask_next(run: CheckRun, draft: Bud, actor: Actor) -> None:
    under_way = _results(run).filter(
        status__in=(ResultStatus.RUNNING.value, ResultStatus.JUDGING.value)
    )
    free = AT_ONCE - under_way.count()
    for result in _results(run).filter(status=ResultStatus.WAITING.value)[: max(0, free)]:
        if not _claim(result, ResultStatus.WAITING, ResultStatus.RUNNING):
            continue
        try:
            _ask(run, result, draft, actor)
        except DomainError as error:
            if _claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING):
                reason = gettext_noop("The question could not be asked: %(error)s")
                _store(result, faults=[reason % {"error": error.message}])


def _ask(run: CheckRun, result: CheckResult, draft: Bud, actor: Actor) -> None:
    assert run.person is not None
    talk = create_conversation(bud=draft, owner=run.person, actor=actor)
    # Before anything is asked: the sandbox finds the recordings by it.
    _results(run).filter(pk=result.pk).update(conversation=talk)
    send_message(
        conversation=talk, client_id=str(result.pk), text=result.expected["question"], actor=actor
    )


def _claim(result: CheckResult, before: ResultStatus, after: ResultStatus) -> bool:
    """Be the one who does a step; whether nobody else was faster, and the run has not been cancelled."""
    running = CheckRun.objects.for_workspace(result.workspace_id).filter(
        pk=OuterRef("run_id"), status=RunStatus.RUNNING.value
    )
    # No join: of two who claim at once, PostgreSQL would let both.
    rows = CheckResult.objects.for_workspace(result.workspace_id).filter(
        Exists(running.order_by()), pk=result.pk, status=before.value
    )
    now = database_now()
    changes: dict[str, Any] = {"status": after.value, "updated_at": now}
    if after is ResultStatus.RUNNING:
        changes["begun_at"] = now
    return bool(rows.update(**changes))


def _store(result: CheckResult, *, faults: list[str], **more: Any) -> None:
    rows = CheckResult.objects.for_workspace(result.workspace_id).filter(
        pk=result.pk, status=ResultStatus.JUDGING.value
    )
    status = ResultStatus.FAILED if faults else ResultStatus.PASSED
    rows.update(status=status.value, faults=faults, finished_at=database_now(), **more)


def _finish(run: CheckRun) -> None:
    passed = _results(run).filter(status=ResultStatus.PASSED.value).count()
    ended = _rows(run).filter(status=RunStatus.RUNNING.value)
    now = database_now()
    with transaction.atomic():
        if not ended.update(status=RunStatus.COMPLETED.value, passed=passed, finished_at=now):
            return
        tell_of_faults(run, passed)
    _clean_up(run)


def _cancel(run: CheckRun, note: str) -> None:
    passed = _results(run).filter(status=ResultStatus.PASSED.value).count()
    ended = _rows(run).filter(status=RunStatus.RUNNING.value)
    if ended.update(
        status=RunStatus.CANCELLED.value,
        passed=passed,
        finished_at=database_now(),
        note=note,
    ):
        _results(run).filter(status__in=_OPEN).update(
            status=ResultStatus.CANCELLED.value, finished_at=database_now()
        )
        _clean_up(run)


def _clean_up(run: CheckRun) -> None:
    """Erase the copy of the bud with its chats, and runs beyond those that are kept."""
    actor = Actor.system(label="checks", source=Source.TASK, workspace_id=run.workspace_id)
    draft = Bud.objects.for_workspace(run.workspace_id).find(run.draft_id) if run.draft_id else None
    if draft is not None:
        forget_tests(draft=draft, actor=actor)
        with transaction.atomic():
            record_deleted(draft, actor=actor)
            draft.delete()
    runs = CheckRun.objects.for_workspace(run.workspace_id).filter(bud_id=run.bud_id)
    oldest = runs.order_by("-id").values_list("pk", flat=True)[KEEP_RUNS - 1 : KEEP_RUNS].first()
    if oldest is not None:
        runs.filter(pk__lt=oldest).exclude(status=RunStatus.RUNNING.value).delete()


def _rows(run: CheckRun) -> Any:
    return CheckRun.objects.for_workspace(run.workspace_id).filter(pk=run.pk)


def _results(run: CheckRun) -> Any:
    return CheckResult.objects.for_workspace(run.workspace_id).filter(run_id=run.pk).order_by("id")
