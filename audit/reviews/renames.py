"""A server's new name in what goes on looking at it: alert rules and schedules, whose filters know it by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from audit.models import AlertRule, ReportSchedule
from audit.reviews.stored_filters import LONGEST, is_address, values_of
from workspaces.actors import Actor
from workspaces.changes import tracked_change
from workspaces.words.typed_filters import with_value

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

_Row = TypeVar("_Row", AlertRule, ReportSchedule)
_SERVER: Final = "server"


def follow_server(*, workspace_id: UUID, before: str, after: str, actor: Actor) -> None:
    """Have filters of alert rules and schedules name a server by its new name, in the caller's transaction.

    What is older stays in the log under the old name. Saved views look back as often as ahead, so they stay as they are.
    """
    for rule in _locked(AlertRule, workspace_id):
        changes = _changes(rule.query, before, after)
        if rule.server_name == before:
            changes["server_name"] = after
        _save(rule, changes, actor)
    for schedule in _locked(ReportSchedule, workspace_id):
        _save(schedule, _changes(schedule.query, before, after), actor)


def _locked(model: type[_Row], workspace_id: UUID) -> Iterable[_Row]:
    rows: WorkspaceQuerySet[_Row] = model.objects.for_workspace(workspace_id)
    return rows.select_for_update(of=("self",)).order_by("id")


def _save(row: AlertRule | ReportSchedule, changes: Mapping[str, str], actor: Actor) -> None:
    if not changes:
        return
    with tracked_change(row, actor=actor):
        for name, value in changes.items():
            setattr(row, name, value)
        row.save(update_fields=[*changes, "updated_at"])


def _changes(query: str, before: str, after: str) -> dict[str, str]:
    """Give the filters with the new name, unless that is too long for them."""
    renamed = _renamed(query, before, after)
    return {"query": renamed} if renamed != query and len(renamed) <= LONGEST else {}


def _renamed(query: str, before: str, after: str) -> str:
    if not is_address(query):
        return with_value(query, _SERVER, before, after)
    values = values_of(query)
    renamed = {
        name: after if name == _SERVER and value == before else value
        for name, value in values.items()
    }
    if "q" in renamed:
        renamed["q"] = with_value(renamed["q"], _SERVER, before, after)
    return query if renamed == values else urlencode(renamed)
