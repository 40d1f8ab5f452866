"""Buds and providers that several people edit at once."""

from __future__ import annotations

from typing import Any

from chat.models import Bud, ModelProvider
from chat.services.buds import create_bud
from chat.services.providers import ProviderDraft, add_provider
from tests.factories import Tenant


def a_bud(tenant: Tenant) -> Bud:
    return create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={"slug": "bud", "name": "Bud"},
    )


def seen_before(row: Any) -> Any:
    """The row as another tab has read it."""
    return type(row).unscoped.get(pk=row.pk)


DRAFT: dict[str, Any] = {"base_url": "https://models.example.org/v1", "default_model": "small"}


def a_provider(tenant: Tenant, key: str = "sk-first-0123456789") -> ModelProvider:
    draft = ProviderDraft(name="Models", api_key=key, **DRAFT)
    return add_provider(workspace=tenant.workspace, draft=draft, actor=tenant.actor())
