"""Testing a model provider, and what it says of its models."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest

from audit.models import OutsideWrite
from chat.models import Bud, ModelProvider, ProviderModel
from chat.providers.listing import MOST_MODELS
from tests.chat.conftest import Chat
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.sharing import row_of, share
from tests.fakes.scripted_model import ScriptedModel
from workspaces.models import User

ROUTER = {
    "id": "big",
    "context_length": 128_000,
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["tools", "reasoning"],
    "pricing": {"prompt": "0.0000025", "completion": "0.00001"},
}
"""As OpenRouter describes a model. Source: OpenRouter, "List available models"."""


@pytest.fixture
def provider(chat: Chat) -> ModelProvider:
    return ModelProvider.objects.for_workspace(chat.tenant.workspace).get()


def where(chat: Chat, provider: ModelProvider) -> str:
    return f"/w/{chat.tenant.workspace.slug}/providers/{provider.pk}/"


def test_a_provider_is_tested_and_its_models_are_listed(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-452, REL-2445: with what it says of them, and a warning if the default model is none of them."""
    chat.model.models = {"data": [ROUTER, {"id": "local", "max_model_len": 8192}]}
    page = chat.tenant.client("admin").post(where(chat, provider))
    big, local = (one["model"] for one in page.context["models"])
    assert (big.context_tokens, big.sees_pictures, big.calls_tools) == (128_000, True, True)
    assert (big.prompt_price, big.completion_price) == (Decimal("2.5"), Decimal(10))
    assert (local.context_tokens, local.sees_pictures) == (8192, None)
    assert "is not among them" in page.content.decode()
    assert "Choose some above" in page.content.decode()
    assert "Test the connection, or" not in page.content.decode()
    assert "sk-scripted-canary" not in page.content.decode()
    assert chat.tenant.client("member").post(where(chat, provider)).status_code == 403


def test_a_new_provider_is_tested_at_once(chat: Chat) -> None:
    """REL-2444: a wrong key is told before buds are given its model, and where it is changed."""
    admin = chat.tenant.client("admin")
    add = "/admin/chat/modelprovider/add/"
    form = admin.get(add).content.decode()
    assert "Leave empty if the provider needs none." in form
    assert 'class="addlink' not in form  # it looks like the button that saves
    draft = {
        "base_url": chat.model.base_url,
        "default_model": "m",
        "new_api_key": "sk-wrong-canary",
        "is_active": "on",
        "known_models-TOTAL_FORMS": "0",
        "known_models-INITIAL_FORMS": "0",
    }
    chat.model.models_status = 401
    page = admin.post(add, {**draft, "name": "Wrong"}, follow=True).content.decode()
    assert "Wrong was added, but does not answer yet: “Wrong” refused the API key" in page
    assert "under “Change the key”" in page
    chat.model.models_status = 200
    page = admin.post(add, {**draft, "name": "Right"}, follow=True).content.decode()
    assert "Right answered in" in page


def test_what_is_kept_leaves_what_people_entered(chat: Chat, provider: ModelProvider) -> None:
    """REL-452: through the service, so that the log knows."""
    chat.model.models = {"data": [ROUTER, {"id": "local"}]}
    rows = ProviderModel.objects.for_workspace(chat.tenant.workspace)
    ProviderModel.objects.create(
        workspace=chat.tenant.workspace, provider=provider, model="big", prompt_price=7
    )
    OutsideWrite.objects.all().delete()
    client = chat.tenant.client("admin")
    sent = {"keep": "1", "models": ["big", "local"]}
    assert client.post(where(chat, provider), sent).status_code == 302
    big = rows.get(model="big")
    assert (big.prompt_price, big.completion_price) == (Decimal(7), Decimal(10))
    assert big.context_tokens == 128_000
    assert rows.filter(model="local").exists()
    assert not OutsideWrite.objects.exists()
    gone = client.post(where(chat, provider), {"keep": "1", "models": ["gone"]})
    assert gone.status_code == 422
    head = {"X-Workspace": chat.tenant.workspace.slug}
    answer = client.post(
        f"/api/providers/{provider.pk}/check/",
        data=json.dumps({"keep": ["big"]}),
        content_type="application/json",
        headers=head,
    )
    assert [one["name"] for one in answer.json()["models"]] == ["big", "local"]
    listed = client.get("/api/providers/", headers=head).json()["results"]
    assert listed[0]["has_key"] is True
    assert "sk-" not in json.dumps(listed)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ({"error": {"message": "bad key"}}, 401, "refused the API key"),
        ({"models": []}, 200, "does not return a list of models"),
        ("no json", 200, "does not return a list of models"),
        ({"error": {"message": "x"}}, 500, "model provider"),
    ],
)
def test_what_went_wrong_is_told_in_words(
    chat: Chat, provider: ModelProvider, answer: Any, status: int, words: str
) -> None:
    """REL-452."""
    chat.model.models, chat.model.models_status = answer, status
    page = chat.tenant.client("admin").post(where(chat, provider))
    assert page.status_code == 200
    assert words in page.context["fault"]


@pytest.mark.parametrize("status", [404, 405])
def test_a_provider_without_a_list_is_asked_for_a_word(
    chat: Chat, provider: ModelProvider, status: int
) -> None:
    """REL-1301: some have none and answer all the same, which the page, the list of providers and programs are told."""
    chat.model.models, chat.model.models_status = "Not found", status
    admin = chat.tenant.client("admin")
    chat.model.say("Yes")
    page = admin.post(where(chat, provider))
    assert page.context["fault"] == ""
    text = page.content.decode()
    assert "The provider has no list of models" in text
    assert "is not among them" not in text
    assert "Keep the chosen models" not in text
    chat.model.say("Yes")
    rows = "/admin/chat/modelprovider/"
    chosen = {"action": "test_connections", "_selected_action": str(provider.pk)}
    html = admin.post(rows, chosen, follow=True).content.decode()
    assert "It has no list of models." in html


@pytest.mark.parametrize("body", [b'{"detail":"Not Found"}', b"<html>404</html>"])
def test_an_address_with_nothing_there_is_no_matter_of_the_buds_model(
    chat: Chat, provider: ModelProvider, body: bytes
) -> None:
    """REL-1301: without its /v1, an address has neither a list nor an answer; the model may be right."""
    chat.model.models, chat.model.models_status = "Not found", 404
    for _ in range(2):
        chat.model.fail(404, body)
    page = chat.tenant.client("admin").post(where(chat, provider))
    assert "Check that it ends with /v1" in page.context["fault"]
    for _ in range(2):
        chat.model.fail(404, body)
    turn = chat.ask()
    assert turn.error_code == "provider_model_unknown"
    assert "nothing under this address and model" in turn.error_message


def test_the_word_that_is_asked_for_tells_what_else_is_wrong(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-1301: such as a key that is refused where there is no list to refuse it."""
    chat.model.models, chat.model.models_status = "Not found", 404
    chat.model.fail(401, b'{"error":{"message":"bad key"}}')
    page = chat.tenant.client("admin").post(where(chat, provider))
    assert "refused the API key" in page.context["fault"]


def test_a_provider_that_is_away_is_told(chat: Chat, provider: ModelProvider) -> None:
    """REL-452, REL-1037: with its host, and nothing else of its address."""
    away = ScriptedModel()
    away.stop()
    address = f"{away.base_url}?token=secret-canary"
    ModelProvider.objects.for_workspace(chat.tenant.workspace).update(base_url=address)
    page = chat.tenant.client("admin").post(where(chat, provider))
    host = urlsplit(address).netloc
    assert f"can't connect to the model provider at {host}. Try again" in page.context["fault"]
    assert "secret-canary" not in page.context["fault"]
    turn = chat.ask()
    assert turn.error_code == "provider_unreachable"
    assert host in turn.error_message
    assert "secret-canary" not in turn.error_message


def test_where_a_shared_provider_is_away_no_host_is_told(chat: Chat, superuser: User) -> None:
    """REL-1037, SEC-455: workspaces do not read where it is."""
    away = ScriptedModel()
    away.stop()
    share(owns(superuser), chat.tenant, base_url=away.base_url)
    row = row_of(chat.tenant)
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=row)
    chat.bud.refresh_from_db()
    turn = chat.ask()
    assert turn.error_message.startswith("Trellis can't connect to the model provider. Try again")
    assert urlsplit(away.base_url).netloc not in turn.error_message


def test_long_and_odd_lists_are_bounded(chat: Chat, provider: ModelProvider) -> None:
    """SEC-354: five thousand models, names that are none, and values of wrong kinds."""
    odd: list[Any] = [
        {"id": "x" * 500},
        {"id": "bad\nname"},
        {"id": 7},
        "text",
        None,
        {"id": "odd", "context_length": -1, "pricing": "free", "architecture": []},
        {"id": "odder", "context_length": True, "pricing": {"prompt": "NaN", "completion": "1e99"}},
    ]
    many = [{"id": f"model-{number:04}"} for number in range(5_000)]
    chat.model.models = {"data": [*odd, *many]}
    page = chat.tenant.client("admin").post(where(chat, provider))
    listing = page.context["listing"]
    assert len(listing.models) == MOST_MODELS
    assert listing.left_out == 5_002 - MOST_MODELS
    chat.model.models = {"data": odd}
    page = chat.tenant.client("admin").post(where(chat, provider))
    found = page.context["listing"].models
    assert [one.name for one in found] == ["odd", "odder"]
    assert {(one.context_tokens, one.prompt_price, one.completion_price) for one in found} == {
        (None, None, None)
    }


def test_programs_add_and_change_providers(chat: Chat, provider: ModelProvider) -> None:
    """REL-529: with each fault at its field; a key does not follow to another address."""
    client = chat.tenant.client("admin")

    def call(method: str, path: str, **body: Any) -> Any:
        return client.generic(
            method,
            f"/api/providers/{path}",
            json.dumps(body),
            content_type="application/json",
            headers={"X-Workspace": chat.tenant.workspace.slug},
        )

    given = {
        "name": "Other",
        "base_url": "https://models.example.org/v1",
        "default_model": "m",
        "api_key": "sk-other-canary-0123456789",
    }
    made = call("POST", "", **given)
    assert made.status_code == 201
    assert "sk-other-canary" not in made.content.decode()
    assert made.json()["has_key"] is True
    assert call("POST", "", **given).json()["errors"][0]["attr"] == "name"
    assert call("POST", "", **{**given, "name": "Third", "base_url": "nonsense"}).status_code == 422
    path = f"{made.json()['id']}/"
    changed = call("PATCH", path, default_model="n").json()
    assert (changed["default_model"], changed["has_key"]) == ("n", True)
    moved = call("PATCH", path, base_url="https://elsewhere.example.org/v1").json()
    assert moved["has_key"] is False
    assert call("PATCH", path, name=provider.name).json()["errors"][0]["attr"] == "name"


def test_pages_mask_what_is_secret_in_the_address(chat: Chat) -> None:
    """REL-838: of a gateway that takes its key there."""
    secret = "gateway-canary-0123456789"
    provider = chat.bud.provider
    assert provider is not None
    provider.base_url = f"{chat.model.base_url}?key={secret}"
    provider.save()
    client = chat.tenant.client("owner")
    for path in ("/admin/chat/modelprovider/", where(chat, provider)):
        page = client.get(path)
        assert page.status_code == 200
        assert chat.model.base_url in page.content.decode()
        assert secret not in page.content.decode()
