"""The model providers of workspaces that stand for one that the platform's owner shares, and what each log says of them.

All of it belongs into a transaction that reaches every workspace, and holds the shared provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import Bud, Conversation, ModelProvider, SharedProvider, WithheldReason
from chat.providers.shared import hold_shared
from mcp_servers.models import McpServer
from workspaces.actors import Actor
from workspaces.changes import (
    CHANGED,
    record_changed,
    record_created,
    record_deleted,
    tracked_change,
)
from workspaces.database import database_now
from workspaces.database.row_security import everywhere
from workspaces.errors import NotFound
from workspaces.models import Workspace


@contextmanager
def holding(shared: SharedProvider) -> Iterator[SharedProvider]:
    """One after another, within the reach of all workspaces.

    Raises:
        NotFound: it is deleted.
    """
    with transaction.atomic(), everywhere():
        stored = hold_shared(shared.pk)
        if stored is None:
            raise NotFound(_("This provider was deleted."))
        yield stored


def given_rows(shared: SharedProvider) -> Any:
    """The rows of all workspaces that it was ever given to and that still have one."""
    return ModelProvider.objects.across_workspaces().filter(shared=shared).order_by("pk")


def give_to_rest(shared: SharedProvider, actor: Actor) -> None:
    """Give it to every workspace that cannot use it yet."""
    withdrawn = given_rows(shared).filter(withheld=WithheldReason.WITHDRAWN.value)
    change_rows(withdrawn, actor, withheld=state_when_given(shared).value)
    have = given_rows(shared).order_by().values("workspace_id")
    give_to(shared, Workspace.objects.exclude(pk__in=have).values_list("pk", flat=True), actor)


def give_to(shared: SharedProvider, workspace_ids: Iterable[UUID], actor: Actor) -> None:
    """Give it to workspaces that have no row of it."""
    wanted = list(workspace_ids)
    names = _Names(shared.name, wanted)
    for workspace_id in wanted:
        row = ModelProvider.objects.create(
            workspace_id=workspace_id,
            shared=shared,
            name=names.free_in(workspace_id),
            base_url="",
            default_model=shared.default_model,
            withheld=state_when_given(shared).value,
            offered_models=shared.offered_models,
        )
        record_created(row, actor=in_workspace(workspace_id, actor))


class _Names:
    """A name for each workspace's provider: the shared one's, unless the workspace has one of that name already."""

    def __init__(self, name: str, workspace_ids: Iterable[UUID]) -> None:
        self._name = name
        rows = ModelProvider.objects.across_workspaces().filter(
            workspace_id__in=list(workspace_ids), name__startswith=name
        )
        self._taken = set(rows.values_list("workspace_id", "name"))

    def free_in(self, workspace_id: UUID) -> str:
        name, number = self._name, 1
        while (workspace_id, name) in self._taken:
            pattern = _("%(name)s (shared)") if number == 1 else _("%(name)s (shared %(number)s)")
            name, number = pattern % {"name": self._name, "number": number}, number + 1
        return name


def tell_workspaces(
    shared: SharedProvider, old: dict[str, Any], behind: list[str], actor: Actor
) -> None:
    """Have what workspaces see follow, and their logs say that something behind it changed."""
    is_renamed = shared.name != old["name"]
    is_other_model = shared.default_model != old["default_model"]
    if not (is_renamed or is_other_model or behind):
        return
    rows = list(given_rows(shared))
    names = _Names(shared.name, [row.workspace_id for row in rows])
    for row in rows:
        theirs = in_workspace(row.workspace_id, actor)
        with tracked_change(row, actor=theirs):
            if is_renamed:
                row.name = names.free_in(row.workspace_id)
            if row.default_model == old["default_model"]:
                row.default_model = shared.default_model
            # Also where nothing of the row is another: what waits for this provider tries again.
            row.save(update_fields=["name", "default_model", "updated_at"])
        if behind and row.withheld != WithheldReason.WITHDRAWN:
            changed_fields = dict.fromkeys(behind, CHANGED)
            record_changed(row, actor=theirs, before={}, after=changed_fields)


def follow_offer(shared: SharedProvider, actor: Actor) -> None:
    """Have workspaces use the models that the shared provider says, where nothing was said of them by name."""
    wanted = shared.offered_models
    rows = [row for row in given_rows(shared) if not row.has_own_offer]
    changed = [row for row in rows if row.offered_models != wanted]
    if changed:
        change_rows(changed, actor, offered_models=wanted)


def state_when_given(shared: SharedProvider) -> WithheldReason:
    """How a workspace has it from the start."""
    return WithheldReason.NO if shared.is_active else WithheldReason.SWITCHED_OFF


def change_rows(rows: Iterable[ModelProvider], actor: Actor, **values: Any) -> None:
    """Give these values to the rows of many workspaces in one statement, and tell each log what changed there."""
    changed = list(rows)
    ids = [row.pk for row in changed]
    stored = ModelProvider.objects.across_workspaces().filter(pk__in=ids)
    stored.update(**values, updated_at=database_now())
    after = {name.removesuffix("_id"): value for name, value in values.items()}
    for row in changed:
        before = {name.removesuffix("_id"): _plain(getattr(row, name)) for name in values}
        names = [name for name, value in after.items() if before[name] != value]
        record_changed(
            row,
            actor=in_workspace(row.workspace_id, actor),
            before={name: before[name] for name in names},
            after={name: after[name] for name in names},
        )


def _plain(value: object) -> object:
    return str(value) if isinstance(value, UUID | Decimal) else value


def delete_rows(rows: Sequence[ModelProvider], actor: Actor) -> None:
    """Delete rows that nothing uses, each with an entry in its log."""
    for row in rows:
        record_deleted(row, actor=in_workspace(row.workspace_id, actor))
    ids = [row.pk for row in rows]
    ModelProvider.objects.across_workspaces().filter(pk__in=ids).delete()


def used_among(rows: Sequence[ModelProvider]) -> set[UUID]:
    """Those without which something would have no model, or another one."""
    ids = [row.pk for row in rows]
    buds = Bud.objects.across_workspaces().filter(provider__in=ids)
    chats = Conversation.objects.across_workspaces().filter(chosen_model__provider__in=ids)
    servers = McpServer.objects.across_workspaces().filter(sampling_provider_id__in=ids)
    named: set[UUID | None] = {
        *buds.values_list("provider_id", flat=True),
        *chats.order_by().values_list("chosen_model__provider_id", flat=True).distinct(),
        *servers.values_list("sampling_provider_id", flat=True),
    }
    return {one for one in named if one is not None}


def in_workspace(workspace_id: UUID, actor: Actor) -> Actor:
    """The same person as the log of another workspace names them: they may have no role there."""
    if actor.workspace_id == workspace_id:
        return actor
    return replace(actor, workspace_id=workspace_id, role=None)
