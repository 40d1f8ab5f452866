"""Earlier states of a bud: what changed, going back, and a copy."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import Bud, BudVersion
from chat.services.buds import create_bud, require_edit, update_bud, values_of
from chat.services.checks import checks_of, replace_checks
from chat.services.knowledge import copy_knowledge
from chat.services.removed_references import UsableValues, without_gone
from chat.services.version_notes import COPY, RESTORED, RESTORED_IN_PART
from workspaces.actors import Actor
from workspaces.errors import NotFound
from workspaces.holding import hold_workspace

_NAMES: Final = 200
"""How many free slugs a copy tries."""
_NOT_COPIED: Final = frozenset({"is_archived", "visibility", "members_may_edit"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that differs between two versions, as lines: `+` added, `-` removed, a blank kept."""

    field: str
    lines: tuple[tuple[str, str], ...]


def version_of(bud: Bud, number: int) -> BudVersion:
    """Give one version.

    Raises:
        NotFound: there is none of that number.
    """
    rows = BudVersion.objects.for_workspace(bud.workspace_id).filter(bud=bud, number=number)
    found: BudVersion | None = rows.first()
    if found is None:
        raise NotFound(_("Version not found."))
    return found


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Give the fields that differ, each as a diff of lines."""
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            lines = difflib.ndiff(_lines(old), _lines(new))
            diff = tuple((line[0], line[2:]) for line in lines if line[0] != "?")
            found.append(FieldChange(field=name, lines=diff))
    return found


def restore_version(
    *,
    bud: Bud,
    number: int,
    actor: Actor,
    base_version: int | None,
    skips_checks: bool = False,
) -> Bud:
    """Make a version the newest one again; those between are kept.

    What it names and is gone by now is left out, see `values_of_version`.

    Raises:
        NotFound: there is none of that number.
        InvalidInput: it names a model that the workspace may not use any more.
        Conflict: somebody else has saved the bud since `base_version`.
        ChecksNotPassed: its checks had not passed, and the bud demands that.
    """
    require_edit(bud, actor)
    earlier = values_of_version(bud, number)
    note = RESTORED_IN_PART if earlier.left_out else RESTORED
    return update_bud(
        bud=bud,
        actor=actor,
        values=earlier.values,
        provider_id=earlier.provider_id,
        has_provider=True,
        base_version=base_version,
        note=note % {"number": number},
        restored=None if earlier.left_out else number,
        skips_checks=skips_checks,
    )


def values_of_version(bud: Bud, number: int) -> UsableValues:
    """Give what a version set, without the servers and tools that are gone, and with a provider that is there.

    Raises:
        NotFound: there is none of that number.
        InvalidInput: what is stored fits its schema no more.
    """
    values = dict(version_of(bud, number).values)
    provider_id = values.pop("provider_id", None)
    return without_gone(bud, values, UUID(provider_id) if provider_id else None)


def duplicate_bud(*, bud: Bud, actor: Actor) -> Bud:
    """Make a bud with the same values and files under a free name, without servers and tools that are gone.

    Raises:
        PermissionDenied: the actor may not make buds.
        InvalidInput: the bud names a model that the workspace may not use any more.
    """
    values = {name: value for name, value in values_of(bud).items() if name not in _NOT_COPIED}
    provider_id = values.pop("provider_id")
    values = without_gone(bud, values, None).values
    values["name"] = f"{bud.name[:90]} (copy)"
    with transaction.atomic():
        hold_workspace(bud.workspace_id)  # a button that is pressed twice makes two copies
        values["slug"] = free_slug(bud.workspace_id, bud.slug)
        made = create_bud(
            workspace_id=bud.workspace_id,
            actor=actor,
            values=values,
            provider_id=UUID(provider_id) if provider_id else None,
            note=COPY % {"name": bud.name},
        )
        copy_knowledge(source=bud, target=made, actor=actor)
        shapes = [check.shape for check in checks_of(bud)]
        replace_checks(bud=made, shapes=shapes, actor=actor)
    return made


def free_slug(workspace_id: UUID, wanted: str) -> str:
    """Give the slug, or the slug with the first free number behind it."""
    begin = wanted[:50] or "bud"
    rows = Bud.objects.for_workspace(workspace_id).filter(slug__startswith=begin)
    taken = set(rows.values_list("slug", flat=True))
    tried = [wanted, *(f"{begin}-{number}" for number in range(2, _NAMES))]
    return next(
        (one for one in tried if one and one not in taken), f"{begin}-{len(taken) + _NAMES}"
    )


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()
