"""People choose bud, model and tools for a conversation: before its first message and in its midst."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chat.models import Bud, Conversation, ModelProvider, ProviderModel, Turn
from chat.models.turns import ACTIVE
from chat.providers.choosing import platform_provider, provider_of
from chat.services.buds import create_bud
from chat.services.conversations import create_conversation, update_conversation
from chat.services.models import models_of
from chat.services.turns import send_message
from tests.factories import CANARY, Tenant, TwoTenants
from workspaces.errors import Conflict, InvalidInput

pytestmark = pytest.mark.django_db


def a_provider(tenant: Tenant, name: str = "Local", model: str = "small") -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace,
        name=name,
        base_url="https://models.example.org/v1",
        default_model=model,
    )


def a_bud(tenant: Tenant, slug: str = "helper", **values: Any) -> Bud:
    given = {"slug": slug, "name": slug.title(), **values}
    return create_bud(workspace_id=tenant.workspace.pk, actor=tenant.actor(), values=given)


def a_chat(tenant: Tenant, bud: Bud, **values: Any) -> Conversation:
    return create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"), **values)


def change(tenant: Tenant, conversation: Conversation, **values: Any) -> Conversation:
    return update_conversation(conversation=conversation, actor=tenant.actor("member"), **values)


def named(provider: ModelProvider, name: str) -> dict[str, Any]:
    return {"provider_id": provider.pk, "name": name}


def test_the_models_of_a_workspace_are_listed_with_what_is_known(
    two_workspaces: TwoTenants,
) -> None:
    """REL-373: those of providers that are on, with price, context and sight; none of other workspaces."""
    a, b = two_workspaces.a, two_workspaces.b
    provider = a_provider(a)
    off = a_provider(a, "Off", "gone")
    off.is_active = False
    off.save()
    a_provider(b, f"{CANARY} models", CANARY)
    ProviderModel.objects.create(
        workspace=a.workspace,
        provider=provider,
        model="large",
        context_tokens=128_000,
        sees_pictures=True,
        prompt_price="2.5",
    )
    found = {one.name: one for one in models_of(a.workspace.pk)}
    assert set(found) == {"small", "large", platform_provider().model}
    assert found["large"].context_tokens == 128_000
    assert found["large"].sees_pictures
    assert found["small"].context_tokens is None
    answer = a.client("member").get("/api/models/", headers={"X-Workspace": a.workspace.slug})
    assert [one["name"] for one in answer.json()] == [one.name for one in models_of(a.workspace.pk)]
    assert CANARY not in answer.content.decode()


def test_another_model_answers_in_mid_conversation(tenant: Tenant) -> None:
    """REL-373: from the next answer on; back to the bud's own with null."""
    provider = a_provider(tenant)
    conversation = a_chat(tenant, a_bud(tenant))
    assert provider_of(conversation).is_demo == platform_provider().is_demo
    conversation = change(tenant, conversation, model=named(provider, "small"))
    spec = provider_of(conversation)
    assert (spec.model, spec.provider_id) == ("small", provider.pk)
    conversation = change(tenant, conversation, model=None)
    assert conversation.chosen_model is None
    assert provider_of(conversation).provider_id is None


def test_another_bud_answers_with_its_own_model(tenant: Tenant) -> None:
    """REL-373: what was chosen for the bud before does not stay."""
    provider = a_provider(tenant)
    conversation = a_chat(tenant, a_bud(tenant), model=named(provider, "small"))
    assert provider_of(conversation).model == "small"
    other = a_bud(tenant, "other")
    conversation = change(tenant, conversation, bud=other)
    assert conversation.bud == other
    assert conversation.chosen_model is None
    other.is_archived = True
    other.save()
    with pytest.raises(InvalidInput):
        change(tenant, a_chat(tenant, a_bud(tenant, "third")), bud=other)


def test_a_bud_can_fix_its_model(tenant: Tenant) -> None:
    """SEC-323: nobody chooses another one, and one that was chosen before is not used any more."""
    provider = a_provider(tenant)
    bud = a_bud(tenant)
    conversation = a_chat(tenant, bud, model=named(provider, "small"))
    bud.is_model_fixed = True
    bud.save()
    conversation.refresh_from_db()
    assert provider_of(conversation).provider_id is None
    with pytest.raises(InvalidInput):
        change(tenant, conversation, model=named(provider, "small"))


def test_a_model_that_is_not_listed_cannot_be_chosen(two_workspaces: TwoTenants) -> None:
    """SEC-323: neither another workspace's, nor one of a provider that is off, nor any name at all."""
    a, b = two_workspaces.a, two_workspaces.b
    mine, theirs = a_provider(a), a_provider(b)
    conversation = a_chat(a, a_bud(a))
    for wanted in (named(theirs, "small"), named(mine, "most-expensive")):
        with pytest.raises(InvalidInput) as refused:
            change(a, conversation, model=wanted)
        assert "model" in refused.value.fields
    client = a.client("member")
    answer = client.patch(
        f"/api/conversations/{conversation.pk}/",
        json.dumps({"bud_id": str(a_bud(b).pk)}),
        content_type="application/json",
        headers={"X-Workspace": a.workspace.slug},
    )
    assert answer.status_code == 422


def test_nothing_changes_under_a_running_answer(tenant: Tenant) -> None:
    """REL-373: who answers is decided between answers."""
    provider = a_provider(tenant)
    bud = a_bud(tenant)
    conversation = a_chat(tenant, bud)
    send_message(
        conversation=conversation, client_id="1", text="Hello?", actor=tenant.actor("member")
    )
    turns = Turn.objects.for_workspace(tenant.workspace)
    assert turns.get().status in ACTIVE
    for wanted in ({"bud": a_bud(tenant, "other")}, {"model": named(provider, "small")}):
        with pytest.raises(Conflict):
            change(tenant, conversation, **wanted)
    change(tenant, conversation, title="Still possible")


def test_tools_and_model_are_chosen_before_the_first_message(tenant: Tenant) -> None:
    """REL-373: they come with the request that opens the conversation."""
    provider = a_provider(tenant)
    bud = a_bud(tenant)
    answer = tenant.client("member").post(
        "/api/conversations/",
        json.dumps(
            {
                "bud_id": str(bud.pk),
                "model": {"provider_id": str(provider.pk), "name": "small"},
                "mcp_config_overrides": {"disabled_tools": ["a.b"]},
            }
        ),
        content_type="application/json",
        headers={"X-Workspace": tenant.workspace.slug},
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["chosen_model"] == {"provider_id": str(provider.pk), "name": "small"}
    row = Conversation.objects.for_workspace(tenant.workspace).get()
    assert row.overrides.disabled_tools == ["a.b"]


def test_a_chat_goes_on_with_the_buds_model_once_the_chosen_one_is_gone(tenant: Tenant) -> None:
    """REL-373: never with one that only has the same name."""
    provider = a_provider(tenant)
    conversation = a_chat(tenant, a_bud(tenant), model=named(provider, "small"))
    provider.delete()
    conversation = Conversation.objects.for_workspace(tenant.workspace).get()
    assert conversation.chosen_model is None
