"""Models that buds use and whose providers end them, or list them no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count

from chat.models import Bud, ListChanges, ModelProvider
from chat.providers.choosing import platform_provider
from chat.providers.known_lists import changes_of
from chat.providers.model_ends import end_of
from chat.providers.shared import addresses_of

_SOON: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedModel:
    """A model that answers for buds which can be used, by their own choice or as their provider's default one."""

    provider_id: UUID | None
    """None: the platform's own."""
    provider_name: str
    name: str
    is_default: bool
    """Whether it is its provider's default model."""
    buds: int
    ends_on: date | None
    gone_since: date | None
    """Since when it has been missing in its provider's list."""


def used_models(workspace_id: UUID, only: Collection[UUID | None] | None = None) -> list[UsedModel]:
    """The models of providers that are on.

    Args:
        only: of these providers; None: of all.
    """
    rows = ModelProvider.objects.for_workspace(workspace_id).answering()
    buds = Bud.objects.for_workspace(workspace_id).filter(is_archived=False, is_draft=False)
    named: list[tuple[UUID | None, str, int]] = [
        (pk, model, number)
        for pk, model, number in buds.order_by()
        .values_list("provider_id", "model")
        .annotate(number=Count("pk"))
        if only is None or pk in only
    ]
    providers = {row.pk: row for row in rows.filter(pk__in={pk for pk, _model, _number in named})}
    platform = platform_provider()
    default = {pk: row.default_model for pk, row in providers.items()} | {None: platform.model}
    used: Counter[tuple[UUID | None, str]] = Counter()
    for pk, model, number in named:
        if pk is None or pk in providers:
            used[pk, model or default[pk]] += number
    addresses = addresses_of(providers.values())
    lists = changes_of(workspace_id, providers.values(), addresses)
    found = []
    for (pk, name), number in used.items():
        changes = lists.get(pk, ListChanges())
        address = platform.base_url if pk is None else addresses[pk]
        found.append(
            UsedModel(
                provider_id=pk,
                provider_name=platform.name if pk is None else providers[pk].name,
                name=name,
                is_default=name == default[pk],
                buds=number,
                ends_on=changes.ends.get(name) or end_of(address, name),
                gone_since=changes.gone.get(name),
            )
        )
    return found


def ending_models(used: Collection[UsedModel]) -> list[tuple[str, date]]:
    """Those that end soon or have ended, by day."""
    until = datetime.now(UTC).date() + _SOON
    ends = {(one.name, one.ends_on) for one in used if one.ends_on and one.ends_on <= until}
    return sorted(ends, key=lambda one: (one[1], one[0]))


def gone_models(used: Collection[UsedModel]) -> list[UsedModel]:
    """Those that their providers list no more, by name."""
    return sorted(
        (one for one in used if one.gone_since), key=lambda one: (one.name, one.provider_name)
    )
