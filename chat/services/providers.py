"""Rules of model providers that hold whoever saves one."""

from __future__ import annotations

from chat.models import ModelProvider
from workspaces.outbound import enter_endpoint


def prepare_provider(provider: ModelProvider, *, has_new_key: bool) -> None:
    """Before a provider is saved: a key stored for one origin does not follow to another.

    Raises:
        InvalidEndpoint: the base URL is not one that may be called.
    """
    stored = ModelProvider.objects.for_workspace(provider.workspace_id).find(provider.pk)
    if stored is None or stored.base_url != provider.base_url:
        enter_endpoint(provider.base_url)
    if stored is not None and stored.origin != provider.origin and not has_new_key:
        provider.api_key = None
