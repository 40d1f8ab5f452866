"""Sections of the admin's forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.test import Client, RequestFactory

from chat.models import ModelProvider
from tests.factories import Tenant
from workspaces.middleware import bind_workspace

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

LONGEST = 8
"""Fields that a form may have without sections."""


@pytest.fixture
def request_of_owner(tenant: Tenant) -> WorkspaceRequest:
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    request = cast("WorkspaceRequest", RequestFactory().get("/admin/"))
    request.user = tenant.owner
    request.request_id = "test"
    bind_workspace(request, tenant.workspace)
    return request


@pytest.fixture
def client(request_of_owner: WorkspaceRequest, tenant: Tenant) -> Client:
    return tenant.client("owner")


def is_folded(page: str, field: str) -> bool:
    """Whether a field lies in a section that is closed."""
    before = page.split(f'name="{field}"', 1)[0]
    return before.count("<details") > before.count("</details>")


@pytest.mark.parametrize(
    "model", sorted(admin.site._registry, key=str), ids=lambda one: one._meta.label
)
def test_long_forms_have_sections_and_fold_what_is_seldom_needed(
    request_of_owner: WorkspaceRequest, model: type[models.Model]
) -> None:
    """REL-1193: each form of the admin that people fill in; only plain fields are folded, whose faults open a section."""
    shown = admin.site._registry[model]
    if not shown.has_add_permission(request_of_owner):
        return
    fieldsets = shown.get_fieldsets(request_of_owner)
    folded = [options for _, options in fieldsets if "collapse" in options.get("classes", ())]
    assert all(isinstance(name, str) for options in folded for name in options["fields"])
    has_own_page = model._meta.label == "chat.Bud"
    if len(flatten_fieldsets(fieldsets)) > LONGEST and not has_own_page:
        assert folded


PROVIDER = {"name": "p", "base_url": "https://m.example.org/v1", "default_model": "m"}
NO_MODELS = {"known_models-TOTAL_FORMS": "0", "known_models-INITIAL_FORMS": "0"}
MODEL = {"model": "m", "context_tokens": "", "prompt_price": "", "cached_price": ""}


@pytest.mark.parametrize(
    ("where", "given", "faulty", "valid"),
    [
        (
            "chat/modelprovider",
            {**PROVIDER, **NO_MODELS},
            {"most_at_once": "0"},
            {"most_at_once": "5"},
        ),
        ("chat/providermodel", MODEL, {"learned_protocol": "none"}, {"learned_protocol": ""}),
        (
            "mcp_servers/stdioprogram",
            {"title": "P", "slug": "p", "command": "/usr/bin/true"},
            {"env_names": "PATH"},
            {"env_names": "API_KEY"},
        ),
        (
            "mcp_servers/mcpserver",
            {
                "name": "s",
                "transport": "streamable_http",
                "url": "https://m.example.org",
                "protocol": "auto",
                "auth_type": "none",
                "sampling": "off",
                "log_level": "info",
            },
            {"sampling_daily_tokens": "many", "call_seconds": "0"},
            {"sampling_daily_tokens": "1000", "call_seconds": "30"},
        ),
    ],
)
def test_a_folded_section_with_a_fault_is_open(
    client: Client,
    where: str,
    given: dict[str, Any],
    faulty: dict[str, str],
    valid: dict[str, str],
) -> None:
    """REL-1193: it is folded as long as nothing in it is wrong; with valid values the form is saved."""
    url = f"/admin/{where}/add/"
    page = client.get(url).content.decode()
    assert all(is_folded(page, field) for field in faulty)
    refused = client.post(url, {**given, **faulty})
    assert refused.status_code == 200
    page = refused.content.decode()
    assert set(faulty) <= set(refused.context["adminform"].form.errors)
    assert not any(is_folded(page, field) for field in faulty)
    assert client.post(url, {**given, **valid}).status_code == 302


def test_a_stored_provider_has_the_same_sections(client: Client, tenant: Tenant) -> None:
    """REL-1193: and saves what is folded."""
    row = ModelProvider.objects.create(workspace=tenant.workspace, **PROVIDER)
    url = f"/admin/chat/modelprovider/{row.pk}/change/"
    page = client.get(url).content.decode()
    assert "Advanced" in page
    assert is_folded(page, "embedding_model")
    assert not is_folded(page, "new_api_key")
    changed = {"embedding_model": "e", "most_at_once": "3"}
    assert client.post(url, {**PROVIDER, **NO_MODELS, **changed}).status_code == 302
    row.refresh_from_db()
    assert (row.embedding_model, row.most_at_once) == ("e", 3)
