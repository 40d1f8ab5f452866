"""A key that a provider refuses: the key that is stored by now, and what people are told where that is refused too."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_noop as _

from chat.models import ModelProvider
from chat.providers.base import ProviderSpec
from chat.providers.errors import ProviderKeyRefused


def with_changed_key(spec: ProviderSpec) -> ProviderSpec | None:
    """The same with the key that is stored now; None: it is the one that was sent.

    A request may have waited for its turn, or for another attempt, while somebody changed the key.
    A key is sent only to the address that it is stored with.
    """
    if spec.provider_id is None or spec.workspace_id is None:
        return None
    row = ModelProvider.objects.for_workspace(spec.workspace_id).find(spec.provider_id)
    if row is None or row.base_url != spec.base_url or not row.api_key:
        return None
    sent = spec.api_key.reveal("comparing keys") if spec.api_key else ""
    is_same = row.api_key.reveal("comparing keys") == sent
    return None if is_same else replace(spec, api_key=row.api_key)


def refused_key(spec: ProviderSpec, error: ProviderKeyRefused) -> ProviderKeyRefused:
    """The refusal with whose key it is, and who can change it."""
    if spec.provider_id is not None:
        told = _(
            "“%(name)s” refused the API key that is stored for it, so it cannot answer. A workspace admin can enter"
            " a working key under “Change the key” on the provider's page."
        ) % {"name": spec.name}
    elif spec.is_platforms:
        told = _(
            "The platform's model provider refused its API key, so it cannot answer. Whoever runs Trellis can set"
            " a working key in OPENAI_API_KEY."
        )
    else:
        return error
    return ProviderKeyRefused(told, details=error.details)
