"""A workspace's provider as requests need it."""

from __future__ import annotations

from chat.models import ModelProvider
from chat.providers.base import ProviderLimits, ProviderSpec


def spec_of(provider: ModelProvider, model: str = "") -> ProviderSpec:
    """Where a model of this provider is served, and within which limits.

    Args:
        model: its default one, if empty.
    """
    return ProviderSpec(
        name=provider.name,
        base_url=provider.base_url,
        model=model or provider.default_model,
        api_key=provider.api_key,
        provider_id=provider.pk,
        workspace_id=provider.workspace_id,
        has_fallback=provider.fallback_id is not None,
        limits=_limits_of(provider),
    )


def embedding_spec_of(provider: ModelProvider) -> ProviderSpec | None:
    """Where the knowledge of this provider's buds gets its vectors; None: it is searched by words only."""
    if not provider.is_active or not provider.embedding_model:
        return None
    return spec_of(provider, provider.embedding_model)


def _limits_of(provider: ModelProvider) -> ProviderLimits | None:
    if provider.most_at_once is None and provider.most_a_minute is None:
        return None
    return ProviderLimits(
        workspace_id=provider.workspace_id,
        provider_id=provider.pk,
        name=provider.name,
        at_once=provider.most_at_once,
        a_minute=provider.most_a_minute,
    )
