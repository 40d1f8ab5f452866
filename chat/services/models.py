"""Which models people may choose among in their chats."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction

from chat.models import Bud, ModelProvider, ProviderModel
from chat.providers.choosing import platform_provider
from chat.providers.known_models import prices_of
from workspaces.actors import Actor
from workspaces.changes import record_created, tracked_change
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require


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
    prompt_price: Decimal | None = None
    completion_price: Decimal | None = None


def models_of(workspace_id: UUID) -> list[ModelChoice]:
    """The models of a workspace: those of its providers that are on, and the platform's own.

    A provider has its default model, those that buds use, and those that an administrator has entered or that were used.
    """
    providers = {
        row.pk: row
        for row in ModelProvider.objects.for_workspace(workspace_id).filter(is_active=True)
    }
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
        if provider_id is not None and provider_id not in providers:
            continue
        row = known.get((provider_id, name))
        is_platforms = provider_id is None
        prices = prices_of(
            platform.base_url if provider_id is None else providers[provider_id].base_url,
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
                prompt_price=prices.prompt,
                completion_price=prices.completion,
            )
        )
    return sorted(found, key=lambda one: (one.provider_name.lower(), one.name.lower()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What administrators say of a model; None where they say nothing. Prices are per million tokens."""

    context_tokens: int | None
    prompt_price: Decimal | None
    cached_price: Decimal | None
    completion_price: Decimal | None
    sees_pictures: bool | None


def describe_model(*, provider: ModelProvider, name: str, facts: ModelFacts, actor: Actor) -> None:
    """Store what is known of a provider's model, in the place of what was known.

    Raises:
        PermissionDenied: the actor may not manage models.
        InvalidInput: with each faulty field.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=provider.workspace_id)
    rows = ProviderModel.objects.for_workspace(provider.workspace_id)
    with transaction.atomic():
        row = rows.filter(provider=provider, model=name).select_for_update().first()
        if row is not None:
            with tracked_change(row, actor=actor):
                _describe(row, facts)
            return
        made = ProviderModel(workspace_id=provider.workspace_id, provider=provider, model=name)
        _describe(made, facts)
        record_created(made, actor=actor)


def _describe(row: ProviderModel, facts: ModelFacts) -> None:
    for name, value in asdict(facts).items():
        setattr(row, name, value)
    try:
        row.full_clean(exclude=["workspace", "provider"], validate_unique=False)
    except ValidationError as error:
        raise InvalidInput(fields=error.message_dict) from error
    row.save()


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
        raise InvalidInput(fields={"model": ["There is no such model in this workspace."]})
    if bud.is_model_fixed:
        if _is_of_bud(bud, provider_id, name):
            return None
        raise InvalidInput(fields={"model": [f"{bud.name} answers with its own model only."]})
    rows = ProviderModel.objects.for_workspace(bud.workspace_id)
    made = ProviderModel(workspace_id=bud.workspace_id, provider_id=provider_id, model=name)
    # Somebody else may choose it for the first time at the same moment.
    ProviderModel.objects.bulk_create([made], ignore_conflicts=True)
    return rows.get(provider_id=provider_id, model=name)


def _is_of_bud(bud: Bud, provider_id: UUID | None, name: str) -> bool:
    own = bud.model or (
        bud.provider.default_model if bud.provider is not None else platform_provider().model
    )
    is_demo = provider_id is None and platform_provider().is_demo
    return bud.provider_id == provider_id and (is_demo or own == name)
