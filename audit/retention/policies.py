"""Changing how a workspace's log is kept and masked; every change is an entry of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from audit.bodies.masking import DETECTORS, MOST_PATHS, read_masked_path
from audit.models import AuditPolicy
from audit.policies import forget_policy
from workspaces.changes import record_created, tracked_change
from workspaces.errors import InvalidInput
from workspaces.holding import hold_workspace
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor

LONGEST_DAYS: Final = 36_500
MOST_KEPT_ENTRIES: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A workspace's settings of its log, all of them."""

    keep_days: int | None
    keep_entries: int | None
    keep_bodies_days: int | None
    body_bytes: int
    masked_paths: Sequence[str]
    detectors: Sequence[str]


def policy_row(workspace_id: UUID) -> AuditPolicy:
    """The stored settings, or the defaults as an unsaved row."""
    found = AuditPolicy.objects.for_workspace(workspace_id).first()
    return found or AuditPolicy(workspace_id=workspace_id)


@transaction.atomic
def change_policy(*, workspace_id: UUID, change: PolicyChange, actor: Actor) -> AuditPolicy:
    """Store the settings. What becomes too old by them goes at the next run, not now.

    Raises:
        PermissionDenied: the actor may not change the workspace's settings.
        InvalidInput: a value is out of range, a path cannot be read, or a detector is not known.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    paths = [line.strip() for line in change.masked_paths if line.strip()]
    if len(paths) > MOST_PATHS:
        message = _("At most %(most)s paths can be masked.") % {"most": MOST_PATHS}
        raise InvalidInput(fields={"masked_paths": [message]})
    for line in paths:
        try:
            read_masked_path(line)
        except InvalidInput as error:
            raise InvalidInput(fields={"masked_paths": [error.message]}) from error
    unknown = sorted(set(change.detectors) - set(DETECTORS))
    if unknown:
        message = _("There is no detector “%(unknown)s”.") % {"unknown": unknown[0][:40]}
        raise InvalidInput(fields={"detectors": [message]})
    hold_workspace(workspace_id)  # two may store the first settings at one moment
    row = policy_row(workspace_id)
    values = {
        "keep_days": change.keep_days,
        "keep_entries": change.keep_entries,
        "keep_bodies_days": change.keep_bodies_days,
        "body_bytes": change.body_bytes,
        "masked_paths": paths,
        "detectors": sorted(set(change.detectors)),
    }
    if row._state.adding:
        _set(row, values)
        record_created(row, actor=actor)
    else:
        with tracked_change(row, actor=actor):
            _set(row, values)
    transaction.on_commit(partial(forget_policy, workspace_id))
    return row


def _set(row: AuditPolicy, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
    try:
        row.full_clean(exclude=["workspace"])
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    row.save()
