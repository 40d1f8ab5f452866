"""What the admin of a workspace sees of its model providers, and sends."""

from __future__ import annotations

import json
from typing import Any

from django.urls import reverse

from chat.models import ModelProvider
from tests.factories import Tenant


def api(tenant: Tenant, method: str, path: str = "", **body: Any) -> Any:
    client = tenant.client("admin")
    client.raise_request_exception = False
    return client.generic(
        method,
        f"/api/providers/{path}",
        json.dumps(body),
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )


def edit_page(row: ModelProvider) -> str:
    return reverse("admin:chat_modelprovider_change", args=[row.pk])


def filled(row: ModelProvider, **changes: Any) -> dict[str, Any]:
    """The admin's form of a provider."""
    return {
        "default_model": row.default_model,
        "is_active": "on",
        "embedding_model": "",
        "known_models-TOTAL_FORMS": "0",
        "known_models-INITIAL_FORMS": "0",
        **changes,
    }
