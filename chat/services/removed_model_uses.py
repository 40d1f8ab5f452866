"""What would get no answers any more if workspaces could use fewer models of a shared provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count
from django.db.models.functions import Coalesce

from chat.models import ModelProvider, SharedProvider, WithheldReason
from chat.services.given_providers import given_rows
from chat.services.parts_of_shared import PartDraft, find_part, offer_of
from chat.services.shared_providers import SharedDraft, offer_of_draft
from chat.services.shared_uses import buds_of, chats_of
from workspaces.actors import Actor
from workspaces.models import Workspace
from workspaces.roles import require_platform_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedModelUses:
    """What uses models that would be taken away."""

    models: tuple[str, ...]
    """Those that are used, by name."""
    workspaces: int
    buds: int
    chats: int
    searches: int
    """Workspaces in which one of them finds passages of knowledge files."""


class _Offered(NamedTuple):
    """What a workspace could use then."""

    row: ModelProvider
    models: list[str] | None
    default_model: str

    def loses(self, model: str) -> str:
        """The name of a model that answers now and would not any more; empty: nothing is lost.

        Args:
            model: empty for the workspace's default one.
        """
        now, then = model or self.row.default_model, model or self.default_model
        is_lost = self.row.offers(now) and self.models is not None and then not in self.models
        return then if is_lost else ""


def would_be_taken(*, shared: SharedProvider, draft: SharedDraft, actor: Actor) -> RemovedModelUses:
    """Count for every workspace that follows the shared provider.

    Raises:
        PermissionDenied: the actor does not own the platform.
        InvalidInput: the draft is faulty.
    """
    require_platform_owner(actor)
    models, default = offer_of_draft(draft), draft.default_model.strip()
    rows = (
        given_rows(shared)
        .filter(has_own_offer=False)
        .exclude(withheld=WithheldReason.WITHDRAWN.value)
    )
    follows = [
        _Offered(
            row, models, default if row.default_model == shared.default_model else row.default_model
        )
        for row in rows
    ]
    return _count(shared, {one.row.workspace_id: one for one in follows})


def would_be_taken_from(
    *, shared: SharedProvider, workspace: Workspace, draft: PartDraft, actor: Actor
) -> RemovedModelUses:
    """Count for one workspace.

    Raises:
        PermissionDenied, InvalidInput: as above.
        NotFound: the workspace does not have it.
    """
    row = find_part(shared=shared, workspace=workspace, actor=actor)
    offered = _Offered(row, offer_of(shared, draft), row.default_model)
    return _count(shared, {workspace.pk: offered})


def _count(shared: SharedProvider, then: Mapping[UUID, _Offered]) -> RemovedModelUses:
    """Three statements, however many workspaces there are."""
    named = Coalesce("chosen_model__model", "bud__model")
    buds = buds_of(shared).filter(is_archived=False).order_by()
    lost = [
        _lost(found, then)
        for found in (
            buds.values_list("workspace_id", "model").annotate(number=Count("pk")),
            chats_of(shared)
            .order_by()
            .annotate(named=named)
            .values_list("workspace_id", "named")
            .annotate(number=Count("pk")),
        )
    ]
    searches = {
        pk: one.row.embedding_model
        for pk, one in then.items()
        if one.row.embedding_model and one.loses(one.row.embedding_model)
    }
    of_buds, of_chats = lost
    everything = {*of_buds, *of_chats, *searches.items()}
    return RemovedModelUses(
        models=tuple(sorted({model for _workspace, model in everything})),
        workspaces=len({workspace for workspace, _model in everything}),
        buds=sum(of_buds.values()),
        chats=sum(of_chats.values()),
        searches=len(searches),
    )


def _lost(
    found: Iterable[tuple[UUID, str, int]], then: Mapping[UUID, _Offered]
) -> Counter[tuple[UUID, str]]:
    """Of the numbers for each workspace and model, those of models that are lost."""
    lost: Counter[tuple[UUID, str]] = Counter()
    for workspace_id, model, number in found:
        offered = then.get(workspace_id)
        if offered is not None and (name := offered.loses(model)):
            lost[workspace_id, name] += number
    return lost
