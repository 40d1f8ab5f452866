"""Entries about the writes that the triggers noted."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from audit.actions import Action
from audit.models import OutsideWrite
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source
from workspaces.audited_tables import AuditedTable, audited_tables
from workspaces.changes import CHANGED, SET
from workspaces.database import is_unavailable
from workspaces.secrets import key_id_of
from workspaces.words.columns import kind_of

logger = logging.getLogger(__name__)

ACTOR: Final = "unknown (past the services)"
_VERBS: Final = {"INSERT": "created", "UPDATE": "changed", "DELETE": "deleted"}
_MOST: Final = 200


def sweep() -> int:
    """Enter what was written past the services; how many rows were touched. Cheap when nothing was."""
    if not OutsideWrite.objects.exists():
        return 0
    last: int | None = 0
    while last is not None:
        number, last = _sweep_after(last)
        if number:
            return number
    return 0


@transaction.atomic
def _sweep_after(last: int) -> tuple[int, int | None]:
    """Enter some of what comes after that one; gives how many, and the last one looked at if there may be more.

    What cannot be entered stays, and keeps nothing behind it waiting.
    """
    rows = OutsideWrite.objects.select_for_update(skip_locked=True).filter(pk__gt=last)
    some = list(rows.order_by("id")[:_MOST])
    groups: dict[tuple[str, str], list[OutsideWrite]] = {}
    for row in some:
        groups.setdefault((row.table_name, row.row_id), []).append(row)
    tables = {watched.table: watched for watched in audited_tables()}
    number = 0
    for group in groups.values():
        try:
            with transaction.atomic():
                OutsideWrite.objects.filter(pk__in=[row.pk for row in group]).delete()
                _enter(group, tables.get(group[0].table_name))
        except Exception as error:
            if is_unavailable(error):
                raise
            extra = {"table": group[0].table_name, "row": group[0].row_id}
            logger.exception("outside_write_not_entered", extra=extra)
        else:
            number += 1
    return number, some[-1].pk if len(some) == _MOST else None


def _enter(writes: list[OutsideWrite], watched: AuditedTable | None) -> None:
    first, last = writes[0], writes[-1]
    before, after = first.before or {}, last.after or {}
    secret = watched.secret_columns if watched is not None else frozenset()
    changed = [
        name
        for name in {**before, **after}
        if before.get(name) != after.get(name)
        and not (name in secret and _is_sealed_anew(before.get(name), after.get(name)))
    ]
    if not changed and first.verb == last.verb == "UPDATE":
        return  # there and back again, or only under another key
    workspace_id = _uuid(last.workspace_key or first.workspace_key)
    record(
        EntryDraft(
            action=Action.CONFIG_CHANGED,
            actor=Actor.system(label=ACTOR, source=Source.COMMAND, workspace_id=workspace_id),
            workspace_id=workspace_id,
            details={
                "verb": _VERBS.get("INSERT" if first.verb == "INSERT" else last.verb, last.verb),
                "kind": kind_of(watched.model) if watched else first.table_name,
                "id": str(_uuid(first.row_id) or first.row_id),
                "name": str(after.get("name") or before.get("name") or ""),
                "before": _shown(before, changed, secret, mask=SET),
                "after": _shown(after, changed, secret, mask=CHANGED if before else SET),
                "past_the_services": True,
            },
        )
    )


def _shown(
    values: dict[str, Any], changed: list[str], secret: frozenset[str], *, mask: str
) -> dict[str, Any]:
    return {
        name: mask if name in secret and values[name] else values[name]
        for name in changed
        if name in values and values[name] not in (None, "")
    }


def _is_sealed_anew(before: object, after: object) -> bool:
    """Whether a secret is the same under another key, as after a rotation; who could forge that has the keys."""
    if not (isinstance(before, str) and isinstance(after, str) and before and after):
        return False
    if min(before.count("."), after.count(".")) < 2:
        return False  # no secret that we sealed
    return key_id_of(before) != key_id_of(after)


def _uuid(text: str) -> UUID | None:
    with contextlib.suppress(ValueError):
        return UUID(text)
    return None
