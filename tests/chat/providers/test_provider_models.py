"""Prices and sizes of models, entered by a workspace's admin."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from audit.models import AuditEntry
from chat.models import ModelProvider, ProviderModel
from tests.factories import Tenant


def provider(tenant: Tenant) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example/v1", default_model="m"
    )


def inline(**rows: Any) -> dict[str, Any]:
    """The provider's form with one row of its models."""
    form = {
        "name": "p",
        "base_url": "https://m.example/v1",
        "default_model": "m",
        "is_active": "on",
        "known_models-TOTAL_FORMS": "1",
        "known_models-INITIAL_FORMS": "0",
        "_save": "Save",
    }
    return form | {f"known_models-0-{name}": value for name, value in rows.items()}


def test_an_admin_enters_what_a_model_costs(tenant: Tenant) -> None:
    """Ours: on the provider's page; each change is in the log, and a member cannot."""
    row = provider(tenant)
    url = f"/admin/chat/modelprovider/{row.pk}/change/"
    client = tenant.client("admin")
    page = client.post(
        url, inline(model="m", context_tokens="8000", prompt_price="2.5"), follow=True
    )
    assert page.status_code == 200
    known = ProviderModel.objects.for_workspace(tenant.workspace).get()
    assert (known.model, known.context_tokens, known.prompt_price) == ("m", 8_000, Decimal("2.5"))
    changed = inline(id=str(known.pk), provider=str(row.pk), model="m", prompt_price="3")
    client.post(url, {**changed, "known_models-INITIAL_FORMS": "1"})
    known.refresh_from_db()
    assert known.prompt_price == Decimal(3)
    gone = inline(id=str(known.pk), provider=str(row.pk), model="m", DELETE="on")
    client.post(url, {**gone, "known_models-INITIAL_FORMS": "1"})
    assert not ProviderModel.objects.for_workspace(tenant.workspace).exists()
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert entries.count() >= 3
    refused = tenant.client("member").post(url, inline(model="x"))
    assert refused.status_code in (302, 403)
    assert not ProviderModel.objects.for_workspace(tenant.workspace).exists()


def test_the_platforms_models_have_a_row_of_their_own(tenant: Tenant) -> None:
    """Ours: without a provider; the same model twice is told and no error page."""
    client = tenant.client("admin")
    form = {"model": "gpt", "completion_price": "10", "_save": "Save"}
    for _ in range(2):
        page = client.post("/admin/chat/providermodel/add/", form, follow=True)
        assert page.status_code == 200
    assert "listed already" in page.content.decode()
    known = ProviderModel.objects.for_workspace(tenant.workspace).get()
    assert (known.provider_id, known.completion_price) == (None, Decimal(10))
    listed = client.get("/admin/chat/providermodel/").content.decode()
    assert "context window (tokens)" in listed.lower(), "the list and the form use one word"
