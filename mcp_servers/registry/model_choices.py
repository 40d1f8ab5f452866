"""Which model providers a workspace has, as far as servers' settings name one. The app above registers who knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias
from uuid import UUID

ListProviders: TypeAlias = Callable[[UUID], Sequence[tuple[UUID, str]]]
"""Id and name of each provider of a workspace."""

_registered: list[ListProviders] = []


def register_providers(list_them: ListProviders) -> None:
    """Say who knows the providers. Called once at start."""
    _registered[:] = [list_them]


def providers_of(workspace_id: UUID) -> list[tuple[UUID, str]]:
    """Id and name of each model provider that a workspace may use."""
    return [provider for list_them in _registered for provider in list_them(workspace_id)]
