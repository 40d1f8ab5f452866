"""Every change of configuration, told once, inside the transaction that makes it.

    with tracked_change(tool, actor=actor):
        tool.is_enabled = False
        tool.save()

`configuration_changed` is the project's only signal of its own. Its receivers run in the
transaction: a change that cannot be recorded is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models, transaction
from django.dispatch import Signal

from workspaces.actors import Actor
from workspaces.errors import NotFound
from workspaces.secrets import EncryptedTextField, Secret
from workspaces.words.columns import kind_of

configuration_changed = Signal()

SET = "(set)"
CHANGED = "(changed)"
UNTOLD = frozenset(
    {"updated_at", "created_at", "last_used_at", "password", "token_hash", "session"}
)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S*\Z", re.IGNORECASE)
_NOTHING: Final = object()
_encoder = DjangoJSONEncoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """What changed, before and after; secrets only as "(set)" and "(changed)"."""

    actor: Actor
    workspace_id: UUID | None
    verb: str
    """created, changed or deleted."""
    kind: str
    """The model's name in plain words, in the platform's language."""
    object_id: str
    object_name: str
    before: Mapping[str, object]
    after: Mapping[str, object]


@contextmanager
def tracked_change(row: models.Model, *, actor: Actor) -> Iterator[None]:
    """Announce what the block changes in this row; nothing when it changes nothing.

    The row is held until the transaction ends, so what somebody deletes meanwhile does not come back by the block's save.

    Raises:
        NotFound: somebody has deleted it.
    """
    with transaction.atomic():
        rows = type(row)._base_manager.select_for_update(no_key=True).filter(pk=row.pk)
        stored = rows.order_by().first()
        if stored is None:
            raise NotFound.of(row)
        old = _snapshot(stored)
        yield
        new = _snapshot(row)
        changed = [name for name in new if new[name] != old.get(name)]
        if changed:
            _announce(
                row,
                actor,
                "changed",
                {name: _shown(old.get(name)) for name in changed},
                {name: _shown(new[name], before=old.get(name)) for name in changed},
            )


def record_created(row: models.Model, *, actor: Actor) -> None:
    """Announce a row that has just been saved for the first time."""
    after = {k: _shown(v) for k, v in _snapshot(row).items() if v not in (None, "", [], {})}
    _announce(row, actor, "created", {}, after)


def record_changed(
    row: models.Model, *, actor: Actor, before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    """Announce a change that was saved with those of other rows, or that stands behind this row. Nothing secret in it."""
    _announce(row, actor, "changed", before, after)


def record_deleted(row: models.Model, *, actor: Actor) -> None:
    """Announce a row that is about to be deleted."""
    before = {k: _shown(v) for k, v in _snapshot(row).items() if v not in (None, "", [], {})}
    _announce(row, actor, "deleted", before, {})


def _announce(
    row: models.Model,
    actor: Actor,
    verb: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    workspace_id = getattr(row, "workspace_id", None)
    if workspace_id is None and row._meta.label_lower == "workspaces.workspace":
        workspace_id = row.pk
    configuration_changed.send(
        sender=type(row),
        change=ConfigurationChange(
            actor=actor,
            workspace_id=workspace_id,
            verb=verb,
            kind=kind_of(type(row)),
            object_id=str(row.pk),
            object_name=str(row),
            before=before,
            after=after,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Stands for a secret's value in a comparison."""

    sealed: str | None


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL whose query, which often holds a key, is compared and never shown."""

    base: str
    query: str


def _snapshot(row: models.Model) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in row._meta.concrete_fields:
        if field.name in UNTOLD:
            continue
        value = getattr(row, field.attname)
        if isinstance(field, EncryptedTextField):
            values[field.name] = (
                _Hidden(value.sealed) if isinstance(value, Secret) and value else None
            )
        elif isinstance(value, str) and "?" in value and _URL.match(value):
            base, _, query = value.partition("?")
            values[field.name] = _Address(base, query)
        elif value is None or isinstance(value, bool | int | float | str | list | dict):
            values[field.name] = value
        else:
            try:
                values[field.name] = _encoder.default(value)
            except TypeError:
                values[field.name] = str(value)
    return values


def _shown(value: Any, *, before: Any = _NOTHING) -> object:
    """The value as it is told; of a changed one, with what it was before."""
    if isinstance(value, _Hidden):
        return SET if before is _NOTHING else CHANGED
    if isinstance(value, _Address):
        is_other = isinstance(before, _Address) and before.query != value.query
        return f"{value.base}?{CHANGED if is_other else SET}"
    return value
