"""A workspace's provider as requests need it."""

from __future__ import annotations

from chat.models import ModelProvider, SharedProvider
from chat.providers.base import MonthLimit, ProviderLimits, ProviderSpec
from chat.providers.errors import ProviderSwitchedOff
from chat.providers.shared import fetch_shared, withheld_model


def spec_of(provider: ModelProvider, model: str = "") -> ProviderSpec:
    """Where a model of this provider is served, and within which limits.

    Args:
        model: its default one, if empty.

    Raises:
        ProviderSwitchedOff: the platform's owner shares it with others, and not with this workspace now.
        ProviderModelWithheld: they let the workspace use other models of it only.
    """
    spec = _spec_of(provider, model or provider.default_model)
    if not provider.offers(spec.model):
        raise withheld_model(provider, spec.model)
    return spec


def list_spec_of(provider: ModelProvider) -> ProviderSpec:
    """Where a provider tells which models it has. Nothing else may be asked with it.

    Raises:
        ProviderSwitchedOff: as above.
    """
    return _spec_of(provider, provider.default_model)


def _spec_of(provider: ModelProvider, model: str) -> ProviderSpec:
    if provider.is_shared:
        return _shared_spec(provider, model)
    return ProviderSpec(
        name=provider.name,
        base_url=provider.base_url,
        model=model,
        api_key=provider.api_key,
        provider_id=provider.pk,
        workspace_id=provider.workspace_id,
        has_fallback=provider.fallback_id is not None,
        limits=limits_of(provider),
    )


def _shared_spec(provider: ModelProvider, model: str) -> ProviderSpec:
    shared = fetch_shared(provider)
    limits = limits_of(provider)
    if shared.most_at_once is not None or shared.most_a_minute is not None:
        limits = ProviderLimits(
            workspace_id=provider.workspace_id,
            provider_id=provider.pk,
            shared_id=shared.pk,
            name=provider.name,
            at_once=shared.most_at_once,
            a_minute=shared.most_a_minute,
            at_once_here=provider.most_at_once,
            a_minute_here=provider.most_a_minute,
        )
    return ProviderSpec(
        name=provider.name,
        base_url=shared.base_url,
        model=model,
        api_key=shared.api_key,
        provider_id=provider.pk,
        workspace_id=provider.workspace_id,
        shared_id=shared.pk,
        is_platforms=True,
        has_fallback=provider.fallback_id is not None,
        limits=limits,
        month_limit=MonthLimit(
            cost=provider.most_cost_a_month, tokens=provider.most_tokens_a_month
        ),
    )


def trial_spec_of(shared: SharedProvider) -> ProviderSpec:
    """Where the platform's owner tries what they share: for no workspace, and without waiting."""
    return ProviderSpec(
        name=shared.name,
        base_url=shared.base_url,
        model=shared.default_model,
        api_key=shared.api_key,
        shared_id=shared.pk,
        is_platforms=True,
    )


def embedding_spec_of(provider: ModelProvider) -> ProviderSpec | None:
    """Where the knowledge of this provider's buds gets its vectors; None: it is searched by words only."""
    if not provider.answers or not provider.embedding_model:
        return None
    try:
        return spec_of(provider, provider.embedding_model)
    except ProviderSwitchedOff:  # since this row was read
        return None


def limits_of(provider: ModelProvider) -> ProviderLimits | None:
    """The limits of one workspace: its own, or those that the platform's owner set for it. None: there are none."""
    if provider.most_at_once is None and provider.most_a_minute is None:
        return None
    return ProviderLimits(
        workspace_id=provider.workspace_id,
        provider_id=provider.pk,
        name=provider.name,
        at_once=provider.most_at_once,
        a_minute=provider.most_a_minute,
        is_part=provider.is_shared,
    )
