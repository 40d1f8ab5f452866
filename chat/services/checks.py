"""Checks of a bud: test questions that people who may edit it add, change and take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from django.utils.translation import gettext as _

from chat.check_shapes import MOST_CHECKS, CheckShape
from chat.models import Bud, BudCheck
from chat.services.buds import require_edit
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput
from workspaces.words.formats import whole
from workspaces.yaml_text import check_shape

_WHAT = gettext_noop("A check is a mapping with question, calls and so on.")
MOST_CHARACTERS = 150_000
"""Of all checks of a bud, as JSON."""
NOTHING_EXPECTED = gettext_lazy("Say what you expect: a tool call, words, or a criterion.")


def checks_of(bud: Bud) -> list[BudCheck]:
    """Give a bud's checks, the oldest first; a draft has those of its bud."""
    return list(BudCheck.objects.for_workspace(bud.workspace_id).of(bud))


def read_check(values: object) -> CheckShape:
    """Check what somebody gave for a check.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    shape = check_shape(CheckShape, values, what=gettext(_WHAT))
    if not shape.expects_something:
        raise InvalidInput(fields={"calls": [NOTHING_EXPECTED]})
    return shape


@transaction.atomic
def add_check(*, bud: Bud, values: object, actor: Actor) -> BudCheck:
    """Add a check to a bud.

    Raises:
        PermissionDenied: the actor may not edit the bud.
        InvalidInput: a value does not fit, or the bud has too many checks.
    """
    require_edit(bud, actor)
    shape = read_check(values)
    _come_one_after_another(bud)
    rows = BudCheck.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    if rows.count() >= MOST_CHECKS:
        raise InvalidInput(
            fields={"question": [_("A bud can have %(most)s checks.") % {"most": MOST_CHECKS}]}
        )
    _check_size([*(check.shape for check in checks_of(bud)), shape])
    return _create(bud, shape, actor)


@transaction.atomic
def update_check(
    *,
    check: BudCheck,
    values: Mapping[str, Any],
    actor: Actor,
    base_version: int | None = None,
) -> BudCheck:
    """Change some values of a check; gives it as it is stored.

    Args:
        base_version: the version that the caller has seen; None: whichever it is.

    Raises:
        PermissionDenied: the actor may not edit the bud.
        NotFound: somebody has taken it away.
        Conflict: somebody else has changed it since that version.
        InvalidInput: a value does not fit.
    """
    require_edit(check.bud, actor)
    _come_one_after_another(check.bud)
    stored: BudCheck = BudCheck.objects.for_workspace(check.workspace_id).fetch(check.pk)
    if base_version is not None and stored.version != base_version:
        message = _(
            "Someone else changed this check in the meantime. Look at their changes, then save again."
        )
        raise Conflict(message, details={"version": stored.version})
    shape = read_check({**stored.shape.model_dump(mode="json"), **values})
    if shape == stored.shape:
        return stored
    others = [one.shape for one in checks_of(check.bud) if one.pk != check.pk]
    _check_size([*others, shape])
    with tracked_change(stored, actor=actor):
        for name, value in shape.model_dump(mode="json").items():
            setattr(stored, name, value)
        stored.version += 1
        stored.save()
    return stored


@transaction.atomic
def remove_check(*, check: BudCheck, actor: Actor) -> None:
    """Take a check from its bud. Results of earlier runs stay.

    Raises:
        PermissionDenied: the actor may not edit the bud.
    """
    require_edit(check.bud, actor)
    record_deleted(check, actor=actor)
    check.delete()


def replace_checks(*, bud: Bud, shapes: Sequence[CheckShape], actor: Actor) -> None:
    """Have a bud hold exactly these checks; those that are the same stay. In the caller's transaction."""
    _check_size(shapes)
    left = list(shapes)
    for check in checks_of(bud):
        if check.shape in left:
            left.remove(check.shape)
        else:
            remove_check(check=check, actor=actor)
    for shape in left:
        _create(bud, shape, actor)


def _come_one_after_another(bud: Bud) -> None:
    """Two people may add or change checks at once; each waits for the other, until the transaction ends."""
    Bud.objects.for_workspace(bud.workspace_id).select_for_update(of=("self",)).fetch(bud.pk)


def _check_size(shapes: Sequence[CheckShape]) -> None:
    """All of them go into one file with the bud."""
    if sum(len(shape.model_dump_json()) for shape in shapes) > MOST_CHARACTERS:
        message = _("The checks of a bud can have %(most)s characters together.") % {
            "most": whole(MOST_CHARACTERS)
        }
        raise InvalidInput(fields={"recordings": [message]})


def _create(bud: Bud, shape: CheckShape, actor: Actor) -> BudCheck:
    check = BudCheck(workspace_id=bud.workspace_id, bud=bud, **shape.model_dump(mode="json"))
    check.save(force_insert=True)
    record_created(check, actor=actor)
    return check
