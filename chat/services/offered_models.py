"""Which rows of models a workspace may see: without those of shared providers that the platform's owner withholds."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from chat.models import ModelProvider, ProviderModel
from workspaces.scoping import WorkspaceQuerySet


def offered_models(workspace_id: UUID) -> WorkspaceQuerySet[ProviderModel]:
    """Those of all its providers, and of the platform's own."""
    limited = ModelProvider.objects.for_workspace(workspace_id).filter(offered_models__isnull=False)
    withheld = Q(pk__in=())
    for provider in limited.only("pk", "offered_models"):
        withheld |= Q(provider=provider) & ~Q(model__in=provider.offered_models)
    rows: WorkspaceQuerySet[ProviderModel] = ProviderModel.objects.for_workspace(workspace_id)
    return rows.exclude(withheld)


def offered_models_of(provider: ModelProvider) -> WorkspaceQuerySet[ProviderModel]:
    """Those of one provider."""
    rows: WorkspaceQuerySet[ProviderModel] = ProviderModel.objects.for_workspace(
        provider.workspace_id
    )
    rows = rows.filter(provider=provider)
    names = provider.offered_models
    return rows if names is None else rows.filter(model__in=names)
