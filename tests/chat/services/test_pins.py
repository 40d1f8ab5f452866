"""Pinned buds and models: first in one person's choice, on each of their devices."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import Bud, ModelProvider, Pin
from chat.services import pins
from chat.services.buds import create_bud
from tests.factories import CANARY, Tenant, TwoTenants


@pytest.fixture
def bud(tenant: Tenant) -> Bud:
    return create_bud(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor(),
        values={"slug": "notes", "name": "Notes"},
        provider_id=None,
    )


@pytest.fixture
def provider(tenant: Tenant) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="Local",
        base_url="https://models.example.org/v1",
        default_model="m",
    )


def call(tenant: Tenant, body: dict[str, Any] | None = None, role: str = "member") -> Any:
    client = tenant.client(role)
    headers = {"X-Workspace": tenant.workspace.slug}
    if body is None:
        return client.get("/api/pins/", headers=headers)
    return client.post("/api/pins/", body, content_type="application/json", headers=headers)


def test_a_bud_and_models_are_pinned_and_unpinned(
    tenant: Tenant, bud: Bud, provider: ModelProvider
) -> None:
    """REL-648: a provider's model and the platform's own; twice is once."""
    of_bud = {"bud_id": str(bud.pk)}
    of_model = {"provider_id": str(provider.pk), "model": "m"}
    of_platform = {"model": "m"}
    for body in (of_bud, of_model, of_platform, of_platform):
        answer = call(tenant, {**body, "is_pinned": True})
        assert answer.status_code == 200
    assert answer.json() == [
        {"bud_id": str(bud.pk), "provider_id": None, "model": ""},
        {"bud_id": None, "provider_id": str(provider.pk), "model": "m"},
        {"bud_id": None, "provider_id": None, "model": "m"},
    ]
    for body in (of_bud, of_platform):
        call(tenant, {**body, "is_pinned": False})
    assert [one["provider_id"] for one in call(tenant).json()] == [str(provider.pk)]


def test_pins_are_their_persons_own(tenant: Tenant, bud: Bud) -> None:
    """REL-648: nobody else sees them."""
    call(tenant, {"bud_id": str(bud.pk), "is_pinned": True})
    assert len(call(tenant).json()) == 1
    assert call(tenant, role="admin").json() == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"bud_id": "00000000-0000-0000-0000-000000000001"},
        {"provider_id": "00000000-0000-0000-0000-000000000001", "model": "m"},
        {"provider_id": "00000000-0000-0000-0000-000000000001"},
    ],
)
def test_what_is_not_there_is_told(tenant: Tenant, body: dict[str, Any]) -> None:
    """REL-648: and nothing is pinned."""
    assert call(tenant, {**body, "is_pinned": True}).status_code == 422
    assert not Pin.objects.for_workspace(tenant.workspace).exists()


def test_nothing_of_another_workspace_can_be_pinned(two_workspaces: TwoTenants) -> None:
    """SEC-03: neither a bud nor a provider."""
    a, b = two_workspaces.a, two_workspaces.b
    foreign = ModelProvider.objects.create(
        workspace=b.workspace, name=CANARY, base_url="https://x.example.org/v1", default_model="m"
    )
    bud = create_bud(
        workspace_id=b.workspace.pk,
        actor=b.actor(),
        values={"slug": "theirs", "name": CANARY},
        provider_id=None,
    )
    for body in (
        {"provider_id": str(foreign.pk), "model": "m"},
        {"bud_id": str(bud.pk)},
    ):
        answer = call(a, {**body, "is_pinned": True})
        assert answer.status_code == 422
        assert CANARY not in answer.content.decode()


def test_there_is_an_end_to_pins(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-648: it is told in words."""
    monkeypatch.setattr(pins, "MOST_PINS", 1)
    call(tenant, {"model": "a", "is_pinned": True})
    answer = call(tenant, {"model": "b", "is_pinned": True})
    assert answer.status_code == 422
    assert "Remove a pin first" in answer.content.decode()
    assert call(tenant, {"model": "a", "is_pinned": True}).status_code == 200
