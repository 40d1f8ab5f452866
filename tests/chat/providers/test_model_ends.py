"""Models that their providers end: told where they are chosen, and to whoever looks after buds."""

from __future__ import annotations

from datetime import date

import pytest

from chat.models import Bud, ModelProvider
from chat.providers.model_ends import end_of
from chat.services.changed_models import ending_models, used_models
from chat.services.models import models_of
from chat.services.shared_providers import withdraw_provider
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.sharing import row_of, share
from tests.factories import Tenant
from workspaces.models import User

OPENAI = "https://api.openai.com/v1"


@pytest.fixture
def provider(tenant: Tenant) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace, name="OpenAI", base_url=OPENAI, default_model="gpt-5-mini"
    )


@pytest.mark.parametrize(
    ("url", "model", "day"),
    [
        (OPENAI, "gpt-5-mini", date(2026, 12, 11)),
        (OPENAI, "gpt-5-mini-2025-08-07", date(2026, 12, 11)),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "models/gemini-2.5-pro",
            date(2026, 12, 1),
        ),
        (OPENAI, "gpt-6.2-sol", None),
        ("https://proxy.example.org/v1", "gpt-5-mini", None),
    ],
)
def test_the_day_is_known_of_known_models_alone(url: str, model: str, day: date | None) -> None:
    """REL-979: and of snapshots of them."""
    assert end_of(url, model) == day


def test_whoever_chooses_a_model_reads_when_it_ends(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-979: over REST, for the chat, and in the bud's editor."""
    [choice] = [one for one in models_of(tenant.workspace.pk) if one.provider_id == provider.pk]
    assert choice.ends_on == date(2026, 12, 11)
    client = tenant.client("admin")
    body = client.get("/api/models/", headers={"X-Workspace": tenant.workspace.slug}).json()
    assert "2026-12-11" in [one["ends_on"] for one in body]
    page = client.get(f"/w/{tenant.workspace.slug}/buds/new/").content.decode()
    assert "its provider ends it on 11 Dec 2026" in page


def test_the_dashboard_tells_of_models_that_buds_use(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-980: their own and their provider's default one; not those of buds that nobody can use any more."""
    assert ending_models(used_models(tenant.workspace.pk)) == []
    client = tenant.client("admin")
    assert "Models that end" not in client.get("/admin/").content.decode()

    def add(name: str, model: str, **more: bool) -> None:
        Bud.objects.create(
            workspace=tenant.workspace,
            slug=name,
            name=name,
            provider=provider,
            model=model,
            **more,
        )

    add("usual", "")
    add("own", "o3")
    add("stays", "gpt-6.2-sol")
    add("gone", "gpt-4o", is_archived=True)
    day = date(2026, 12, 11)
    assert ending_models(used_models(tenant.workspace.pk)) == [("gpt-5-mini", day), ("o3", day)]
    page = client.get("/admin/").content.decode()
    assert "Models that end" in page
    assert "gpt-5-mini (11 Dec 2026), o3 (11 Dec 2026)" in page
    assert "gpt-5-mini" not in tenant.client("member").get("/admin/", follow=True).content.decode()


def test_models_of_what_the_platform_shares_end_too(tenant: Tenant, superuser: User) -> None:
    """REL-980: told without its address, and no more once it is withdrawn."""
    owner = owns(superuser)
    shared = share(owner, tenant, base_url=OPENAI, default_model="gpt-5-mini")
    row = row_of(tenant)
    Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud", provider=row)
    [choice] = [one for one in models_of(tenant.workspace.pk) if one.provider_id == row.pk]
    assert choice.ends_on == date(2026, 12, 11)
    assert ending_models(used_models(tenant.workspace.pk)) == [("gpt-5-mini", choice.ends_on)]
    withdraw_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    assert ending_models(used_models(tenant.workspace.pk)) == []
