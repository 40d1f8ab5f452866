"""Model providers that the platform's owner shares."""

from __future__ import annotations

from typing import Any

from audit.models import AuditEntry
from chat.models import ModelProvider, SharedProvider
from chat.services.shared_providers import SharedDraft, give_provider, share_provider
from tests.factories import Tenant
from workspaces.actors import Actor

KEY, NEW_KEY = "sk-shared-canary-0123456789", "sk-shared-canary-9876543210"
ADDRESS = "https://shared-canary.example.org/v1"


def draft(**changes: Any) -> SharedDraft:
    return SharedDraft(**{"name": "Shared", "base_url": ADDRESS, "default_model": "m", **changes})


def share(owner: Actor, *tenants: Tenant, **changes: Any) -> SharedProvider:
    """A provider that these workspaces have; nobody is asked."""
    given = draft(**{"api_key": KEY, **changes})
    shared = share_provider(draft=given, actor=owner, is_tested=False)
    for tenant in tenants:
        give_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    return shared


def row_of(tenant: Tenant) -> ModelProvider:
    """What a workspace has of it."""
    return ModelProvider.objects.for_workspace(tenant.workspace).get(shared__isnull=False)


def stored_key(shared: SharedProvider) -> str:
    shared.refresh_from_db()
    return shared.api_key.reveal("test") if shared.api_key else ""


def changes_in(workspace: Any) -> list[tuple[str, str, Any]]:
    """What the log of a workspace tells of its providers, or that of the platform."""
    rows = AuditEntry.objects.across_workspaces().filter(
        workspace_id=getattr(workspace, "pk", None), action="config.changed"
    )
    return [
        (row.details["verb"], row.details["name"], row.details["after"])
        for row in rows.order_by("pk")
        if "provider" in row.details["kind"]
    ]
