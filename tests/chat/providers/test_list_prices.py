"""Prices of well-known models are known from the start; what a workspace enters comes first."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.utils.formats import date_format

from chat.models import ModelProvider, ProviderModel
from chat.providers.base import ProviderSpec, TokenCount
from chat.providers.known_models import known_facts, prices_of
from chat.providers.list_prices import list_price
from chat.services.models import models_of
from tests.factories import Tenant

OPENAI = "https://api.openai.com/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
DAY = date(2026, 11, 26)


@pytest.mark.parametrize(
    ("url", "model", "prompt"),
    [
        (OPENAI, "gpt-5-mini", "0.25"),
        (OPENAI, "gpt-5-mini-2025-08-07", "0.25"),
        ("https://api.anthropic.com/v1/", "claude-haiku-4-5-20251001", "1"),
        (GEMINI, "models/gemini-2.5-flash", "0.3"),
        (OPENAI, "gpt-5-mini-special", None),
        (OPENAI, "gpt-99", None),
        ("https://proxy.example.org/v1", "gpt-5-mini", None),
        ("nonsense", "gpt-5-mini", None),
    ],
)
def test_a_price_is_told_of_known_models_alone(url: str, model: str, prompt: str | None) -> None:
    """REL-527: an unknown price is none, and never nothing to pay."""
    found = list_price(url, model, on=DAY)
    assert (found.rates.prompt if found else None) == (Decimal(prompt) if prompt else None)


@pytest.mark.parametrize(
    ("prompt", "cost"), [(272_000, "0.544010"), (272_001, "1.088019")], ids=["short", "long"]
)
def test_the_whole_of_a_long_request_costs_what_long_ones_do(prompt: int, cost: str) -> None:
    """REL-971: of the prompt and of the answer, from the first token above the provider's limit."""
    prices = prices_of(OPENAI, "gpt-6.2-sol", prompt=None, completion=None)
    assert prices.cost_of(TokenCount(prompt=prompt, completion=1)) == Decimal(cost)


def test_what_a_workspace_enters_holds_for_prompts_of_any_length() -> None:
    """REL-971: it has entered one price."""
    prices = prices_of(OPENAI, "gpt-6.2-sol", prompt=Decimal(1), completion=Decimal(1))
    assert prices.cost_of(TokenCount(prompt=1_000_000)) == Decimal(1)


@pytest.mark.parametrize(
    ("day", "prompt"), [(date(2026, 12, 31), "0.75"), (date(2027, 1, 1), "1.5")]
)
def test_an_offer_ends_on_its_last_day(day: date, prompt: str) -> None:
    """REL-971: then the model costs what the provider has announced."""
    found = list_price(GEMINI, "gemini-3.8-flash", on=day)
    assert found is not None
    assert found.rates.prompt == Decimal(prompt)


@pytest.mark.django_db
def test_what_a_workspace_enters_comes_first(tenant: Tenant) -> None:
    """REL-527: for costs of turns, and in the list of models that people choose from."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="OpenAI", base_url=OPENAI, default_model="gpt-5-mini"
    )
    spec = ProviderSpec(name="OpenAI", base_url=OPENAI, model="gpt-5-mini", provider_id=provider.pk)
    usage = TokenCount(prompt=1_000_000, cached=0, completion=1_000_000)
    assert known_facts(tenant.workspace.pk, spec).prices.cost_of(usage) == Decimal("2.25")
    ProviderModel.objects.create(
        workspace=tenant.workspace,
        provider=provider,
        model="gpt-5-mini",
        prompt_price=1,
        completion_price=1,
    )
    assert known_facts(tenant.workspace.pk, spec).prices.cost_of(usage) == Decimal(2)
    [shown] = [one for one in models_of(tenant.workspace.pk) if one.provider_id == provider.pk]
    assert (shown.prompt_price, shown.completion_price) == (Decimal(1), Decimal(1))
    unknown = ProviderSpec(name="x", base_url="https://x.example.org", model="gpt-5-mini")
    assert known_facts(tenant.workspace.pk, unknown).prices.cost_of(usage) is None
    page = f"/w/{tenant.workspace.slug}/providers/{provider.pk}/"
    assert "list price of" not in tenant.client("admin").get(page).content.decode()
    ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="gpt-6.2-sol")
    html = tenant.client("admin").get(page).content.decode()
    assert "list price of 18 Nov 2026" in html
    assert "4 above 272,000 tokens" in html


@pytest.mark.django_db
def test_a_list_price_is_told_with_its_day_and_can_be_corrected(tenant: Tenant) -> None:
    """REL-669: in the bud's editor, over REST, and where prices are entered; the workspace's own has no day."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="OpenAI", base_url=OPENAI, default_model="gpt-5-mini"
    )
    client, headers = tenant.client("admin"), {"X-Workspace": tenant.workspace.slug}

    def listed_on() -> str | None:
        found = client.get("/api/models/", headers=headers).json()
        return next(
            one["prices_listed_on"] for one in found if one["provider_id"] == str(provider.pk)
        )

    listed = list_price(OPENAI, "gpt-5-mini", on=DAY)
    assert listed is not None
    day = date_format(listed.listed_on, "j M Y")
    assert listed_on() == listed.listed_on.isoformat()
    assert (
        f"list price of {day}"
        in client.get(f"/w/{tenant.workspace.slug}/buds/new/").content.decode()
    )
    form = "/admin/chat/providermodel/add/"
    assert "if Trellis knows it" in client.get(form).content.decode()
    values = {
        "provider": str(provider.pk),
        "model": "gpt-5-mini",
        "prompt_price": "1",
        "completion_price": "3",
        "sees_pictures": "",
        "learned_protocol": "",
    }
    saved = client.post(form, values)
    assert saved.status_code == 302, saved.context["adminform"].form.errors
    assert listed_on() is None
