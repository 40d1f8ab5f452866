"""The page of the model provider that all workspaces share: for the platform's owner alone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from django.test import Client
from pydantic import SecretStr

from chat.models import Conversation, ModelProvider, ProviderModel, Turn
from chat.providers.choosing import platform_provider, provider_of_turn
from chat.services.platform_provider import usage_by_workspace
from tests.chat.conftest import Chat
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.usage import ask, make_bud
from tests.factories import CANARY, TwoTenants, signed_in
from workspaces.errors import PermissionDenied
from workspaces.models import User

URL = "/platform/provider/"
KEY = "sk-platform-canary-0123456789"


@pytest.fixture
def shared(chat: Chat, settings: Any) -> Iterator[Chat]:
    """The scripted model is the platform's own, too."""
    update = {
        "openai_base_url": chat.model.base_url,
        "openai_api_key": SecretStr(KEY),
        "openai_model": "m",
        "openai_most_at_once": 5,
    }
    settings.TRELLIS = settings.TRELLIS.model_copy(update=update)
    platform_provider.cache_clear()
    yield chat
    platform_provider.cache_clear()


@pytest.fixture
def owner(superuser: User) -> Client:
    """The browser of the platform's owner."""
    return signed_in(superuser)


def test_the_owner_sees_where_it_is_set_and_no_key(shared: Chat, owner: Client) -> None:
    """REL-833: each variable of the environment by its name; the key only as set."""
    page = owner.get(URL).content.decode()
    assert shared.model.base_url in page
    assert "OPENAI_API_KEY" in page
    assert "set, and not shown" in page
    assert "Now: 0 running, 0 waiting, 0 in the last minute." in page
    assert KEY not in page
    assert "Shared model provider" in owner.get("/admin/").content.decode()


def test_it_is_asked_for_its_models_and_for_a_word(shared: Chat, owner: Client) -> None:
    """REL-833: with the platform's key, also on a private network; what goes wrong is told in words."""
    shared.model.models = {
        "data": [{"id": "big", "context_length": 9000, "supported_parameters": ["tools"]}]
    }
    shared.model.say("Yes")
    page = owner.post(URL)
    html = page.content.decode()
    assert page.context["trial"].fault == ""
    assert "m answered in" in html
    assert "The default model “m” is not in the provider" in html
    assert "9,000" in html
    shared.model.fail(401, b"{}")
    refused = owner.post(URL)
    assert "m did not answer." in refused.content.decode()
    assert KEY not in refused.content.decode()


def test_a_model_that_its_provider_ends_is_told(shared: Chat, owner: Client) -> None:
    """REL-972: with the day, at the model and, for the default one, as a warning; other values say nothing."""
    shared.model.models = {
        "data": [
            {"id": "m", "shutdown_date": "2026-12-11"},
            {"id": "stays", "shutdown_date": None},
            {"id": "odd", "shutdown_date": "soon"},
        ]
    }
    shared.model.say("Yes")
    page = owner.post(URL).content.decode()
    assert "The provider ends the default model “m” on 11 Dec 2026." in page
    assert page.count("ends on 11 Dec 2026") == 1


@pytest.mark.django_db
def test_nobody_else_finds_it(two_workspaces: TwoTenants) -> None:
    """SEC-435: an admin of a workspace, its owner too, may neither see nor try it."""
    for role in ("owner", "admin", "member"):
        client = two_workspaces.a.client(role)
        assert client.get(URL).status_code == 404
        assert client.post(URL).status_code == 404
        with pytest.raises(PermissionDenied):
            usage_by_workspace(actor=two_workspaces.a.actor(role))
    assert Client().get(URL).status_code == 302


@pytest.mark.django_db
@pytest.mark.both_engines
def test_use_is_counted_for_each_workspace(
    two_workspaces: TwoTenants, owner: Client, django_assert_max_num_queries: Any
) -> None:
    """REL-834: questions, tokens and cost of what goes to it; a workspace's own provider is not in it."""
    a, b = two_workspaces.a, two_workspaces.b
    for _ in range(2):
        ask(
            a, make_bud(a, f"Notes{_}"), a.member, "member", prompt_tokens=1000, cost=Decimal("0.5")
        )
    ask(b, make_bud(b, "Clock"), b.member, "member", prompt_tokens=7)
    own = make_bud(a, "Own")
    own.provider = ModelProvider.objects.create(
        workspace=a.workspace, name="p", base_url="https://m.example/v1", default_model="m"
    )
    own.save()
    ask(a, own, a.member, "member", prompt_tokens=99_999)
    with django_assert_max_num_queries(12):
        page = owner.get(URL)
    found = page.context["usage"].rows
    assert [(one.workspace.pk, one.questions, one.prompt_tokens, one.cost) for one in found] == [
        (a.workspace.pk, 2, 2000, Decimal(1)),
        (b.workspace.pk, 1, 7, None),
    ]
    assert CANARY in page.content.decode()
    assert "99,999" not in page.content.decode()


@pytest.mark.django_db
def test_the_count_agrees_with_who_answers(two_workspaces: TwoTenants, superuser: User) -> None:
    """REL-834: whatever a bud, a chat and a question choose."""
    tenant = two_workspaces.a
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example/v1", default_model="m"
    )
    rows = ProviderModel.objects
    choices = (
        None,
        rows.create(workspace=tenant.workspace, provider=provider, model="m"),
        rows.create(workspace=tenant.workspace, provider=None, model="m"),
    )
    bud, other = make_bud(tenant, "Bud"), make_bud(tenant, "Other")
    ask(tenant, bud, tenant.member, "member")
    turns = Turn.objects.for_workspace(tenant.workspace)
    [turn] = turns
    combinations = list(product((None, provider), (False, True), choices, choices, (None, other)))
    assert len(combinations) == 72
    for own, is_fixed, of_chat, of_turn, mentioned in combinations:
        for row in (bud, other):
            row.provider, row.is_model_fixed = own, is_fixed
            row.save()
        Conversation.objects.for_workspace(tenant.workspace).update(chosen_model=of_chat)
        turns.update(chosen_model=of_turn, mentioned_bud=mentioned)
        fresh = turns.select_related(
            "conversation__bud__provider", "mentioned_bud__provider", "chosen_model__provider"
        ).get(pk=turn.pk)
        is_counted = bool(usage_by_workspace(actor=owns(superuser)).rows)
        assert is_counted is (provider_of_turn(fresh).provider_id is None), (
            own,
            is_fixed,
            of_chat,
            of_turn,
            mentioned,
        )
