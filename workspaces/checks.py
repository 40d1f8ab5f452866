"""System checks that hold the tenant door shut."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core import checks

from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet


@checks.register(checks.Tags.models)
def tenant_models_have_a_door(**kwargs: Any) -> list[checks.CheckMessage]:
    """Every model with a workspace is reached through a scoped manager."""
    faults: list[checks.CheckMessage] = []
    for model in apps.get_models():
        names = {field.name for field in model._meta.get_fields()}
        if not names & {"workspace", "workspace_id"}:
            continue
        manager = getattr(model, "objects", None)
        if manager is None or not issubclass(manager.get_queryset().__class__, WorkspaceQuerySet):
            faults.append(
                checks.Error(
                    "has a workspace, but its `objects` is no WorkspaceQuerySet",
                    obj=model,
                    id="trellis.E001",
                )
            )
    return faults


@checks.register(checks.Tags.admin)
def tenant_admins_are_scoped(**kwargs: Any) -> list[checks.CheckMessage]:
    """Every admin class of a tenant's model descends from the scoped one."""
    import_module(settings.ROOT_URLCONF)  # where the admin's classes are found

    from workspaces.pages.model_admin import WorkspaceModelAdmin

    faults: list[checks.CheckMessage] = []
    for model, model_admin in admin.site._registry.items():
        is_tenants = issubclass(model, WorkspaceModel) or hasattr(model, "workspace_id")
        if is_tenants and not isinstance(model_admin, WorkspaceModelAdmin):
            faults.append(
                checks.Error(
                    "is registered with an admin class that is not a WorkspaceModelAdmin",
                    obj=model,
                    id="trellis.E002",
                )
            )
    return faults
