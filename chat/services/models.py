"""Which models people may choose among in their chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.engine.beginning import MOST_COMPARED
from chat.models import Bud, ListChanges, ModelProvider, ProviderModel
from chat.providers.choosing import platform_provider
from chat.providers.known_lists import changes_of
from chat.providers.known_models import prices_of
from chat.providers.model_ends import end_of
from chat.providers.shared import addresses_of
from workspaces.errors import InvalidInput

_NOTHING: Final = ListChanges()

ModelNamed = tuple[UUID | None, str]
"""A provider, None being the platform's own, and the name of a model of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model, with what is known of it; None where nobody knows."""

    provider_id: UUID | None
    """None: the platform's own."""
    name: str
    provider_name: str
    is_demo: bool = False
    context_tokens: int | None = None
    sees_pictures: bool | None = None
    calls_tools: bool | None = None
    gets_tools: bool = True
    """False: an administrator has said that it calls none, so it is offered none."""
    reasons: bool | None = None
    prompt_price: Decimal | None = None
    completion_price: Decimal | None = None
    prices_listed_on: date | None = None
    """The day of the provider's list that the prices are from; None: the workspace has entered them."""
    ends_on: date | None = None
    """The day from which its provider serves it no more."""
    gone_since: date | None = None
    """Since when it has been missing in its provider's list."""


def models_of(workspace_id: UUID) -> list[ModelChoice]:
    """The models of a workspace: those of its providers that are on, and the platform's own.

    A provider has its default model, those that buds use, and those that an administrator has entered or that were used.
    """
    providers = {
        row.pk: row for row in ModelProvider.objects.for_workspace(workspace_id).answering()
    }
    addresses = addresses_of(providers.values())
    lists = changes_of(workspace_id, providers.values(), addresses)
    platform = platform_provider()
    wanted = {(pk, row.default_model) for pk, row in providers.items()} | {(None, platform.model)}
    buds = (
        Bud.objects.for_workspace(workspace_id)
        .filter(is_archived=False, is_draft=False)
        .exclude(model="")
    )
    wanted |= set(buds.values_list("provider_id", "model"))
    known = {
        (row.provider_id, row.model): row
        for row in ProviderModel.objects.for_workspace(workspace_id)
    }
    if platform.is_demo:
        # It is one model, whatever it is called.
        wanted = {one for one in wanted if one[0] is not None} | {(None, platform.model)}
        known = {key: row for key, row in known.items() if key[0] is not None}
    found = []
    for provider_id, name in {*wanted, *known}:
        if provider_id is not None and not (
            provider_id in providers and providers[provider_id].offers(name)
        ):
            continue
        row = known.get((provider_id, name))
        is_platforms = provider_id is None
        base_url = platform.base_url if provider_id is None else addresses[provider_id]
        changes = lists.get(provider_id, _NOTHING)
        prices = prices_of(
            base_url,
            name,
            prompt=row.prompt_price if row else None,
            completion=row.completion_price if row else None,
        )
        found.append(
            ModelChoice(
                provider_id=provider_id,
                name=name,
                provider_name=platform.name if provider_id is None else providers[provider_id].name,
                is_demo=is_platforms and platform.is_demo,
                context_tokens=row.context_tokens if row else None,
                sees_pictures=row.sees_pictures if row else None,
                calls_tools=row.tools_known if row else None,
                gets_tools=row is None or row.calls_tools is not False,
                reasons=row.reasoning_known if row else None,
                prompt_price=prices.prompt,
                completion_price=prices.completion,
                prices_listed_on=prices.listed_on,
                ends_on=changes.ends.get(name) or end_of(base_url, name),
                gone_since=changes.gone.get(name),
            )
        )
    return sorted(found, key=lambda one: (one.provider_name.lower(), one.name.lower()))


def choose_model(*, bud: Bud, provider_id: UUID | None, name: str) -> ProviderModel | None:
    """The row of a model that a chat with this bud shall use; None where it is the bud's own.

    Raises:
        InvalidInput: the bud's model is fixed, or there is no such model here.
    """
    row = find_model(bud=bud, provider_id=provider_id, name=name)
    return None if _is_of_bud(bud, provider_id, name) else row


def find_model(*, bud: Bud, provider_id: UUID | None, name: str) -> ProviderModel | None:
    """The row of a model that may answer for this bud; None where it is the bud's own and the only one it may use.

    Raises:
        InvalidInput: as above.
    """
    if all(
        (one.provider_id, one.name) != (provider_id, name) for one in models_of(bud.workspace_id)
    ):
        raise InvalidInput(fields={"model": [_("There is no such model in this workspace.")]})
    if bud.is_model_fixed:
        if _is_of_bud(bud, provider_id, name):
            return None
        raise InvalidInput(
            fields={"model": [_("%(name)s answers with its own model only.") % {"name": bud.name}]}
        )
    return _row_of(bud.workspace_id, provider_id, name)


def find_compared(*, bud: Bud, names: Sequence[ModelNamed]) -> list[ProviderModel]:
    """The rows of the models that answer a question side by side; none where none are named.

    Raises:
        InvalidInput: too few or too many, one of them twice, the bud's model is fixed, or there is no such model here.
    """
    if not names:
        return []
    fault = ""
    if not 2 <= len(names) <= MOST_COMPARED:
        fault = _("Choose two or three models to compare.")
    elif len(set(names)) < len(names):
        fault = _("Choose different models to compare.")
    elif bud.is_model_fixed:
        fault = _(
            "%(name)s answers with its own model only, so you can't compare models with it."
        ) % {"name": bud.name}
    if fault:
        raise InvalidInput(fields={"compare": [fault]})
    if not set(names) <= {(one.provider_id, one.name) for one in models_of(bud.workspace_id)}:
        raise InvalidInput(fields={"compare": [_("There is no such model in this workspace.")]})
    return [_row_of(bud.workspace_id, provider_id, name) for provider_id, name in names]


def find_other(*, bud: Bud, provider_id: UUID | None, name: str) -> ProviderModel:
    """The row of a model whose answer stands beside another one's.

    Raises:
        InvalidInput: the bud's model is fixed, or there is no such model here.
    """
    row = find_model(bud=bud, provider_id=provider_id, name=name)
    if row is None:
        raise InvalidInput(
            fields={"model": [_("%(name)s answers with its own model only.") % {"name": bud.name}]}
        )
    return row


def _row_of(workspace_id: UUID, provider_id: UUID | None, name: str) -> ProviderModel:
    rows = ProviderModel.objects.for_workspace(workspace_id)
    made = ProviderModel(workspace_id=workspace_id, provider_id=provider_id, model=name)
    # Somebody else may choose it for the first time at the same moment.
    ProviderModel.objects.bulk_create([made], ignore_conflicts=True)
    row: ProviderModel = rows.get(provider_id=provider_id, model=name)
    return row


def _is_of_bud(bud: Bud, provider_id: UUID | None, name: str) -> bool:
    own = bud.model or (
        bud.provider.default_model if bud.provider is not None else platform_provider().model
    )
    is_demo = provider_id is None and platform_provider().is_demo
    return bud.provider_id == provider_id and (is_demo or own == name)
