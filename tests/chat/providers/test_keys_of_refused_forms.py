"""A key that somebody typed into a form that was refused: the page comes back without it, and says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from chat.models import Bud, ModelProvider, OfferedModels
from tests.chat.conftest import Chat
from tests.chat.providers.platform_owner import owns
from tests.chat.providers.sharing import row_of, share
from tests.factories import signed_in
from workspaces.models import User
from workspaces.pages.secret_fields import ENTER_AGAIN

KEY = "sk-typed-canary-0123456789"


def provider_form(**changed: Any) -> dict[str, Any]:
    inline = {"TOTAL_FORMS": "0", "INITIAL_FORMS": "0", "MIN_NUM_FORMS": "0"}
    return {
        "name": "New",
        "base_url": "https://models.example.org/v1",
        "default_model": "m",
        "is_active": "on",
        "new_api_key": KEY,
        **{f"known_models-{name}": value for name, value in inline.items()},
        **changed,
    }


@pytest.mark.parametrize(
    "fault",
    [
        {"base_url": "not an address"},
        {
            "known_models-TOTAL_FORMS": "1",
            "known_models-0-model": "m",
            "known_models-0-context_tokens": "-1",
        },
    ],
)
def test_a_refused_provider_asks_for_its_key_again(chat: Chat, fault: dict[str, str]) -> None:
    """REL-1302: also where only a model in the table was refused. The key itself is on no page."""
    admin = chat.tenant.client("admin")
    where = reverse("admin:chat_modelprovider_add")
    page = admin.post(where, provider_form(**fault))
    assert page.status_code == 200
    assert str(ENTER_AGAIN) in page.content.decode()
    assert KEY not in page.content.decode()
    assert not ModelProvider.objects.for_workspace(chat.tenant.workspace).filter(name="New")
    without = admin.post(where, provider_form(**fault, new_api_key="")).content.decode()
    assert str(ENTER_AGAIN) not in without
    assert admin.post(where, provider_form()).status_code == 302
    made = ModelProvider.objects.for_workspace(chat.tenant.workspace).get(name="New")
    assert made.api_key is not None


def test_a_question_before_saving_asks_for_the_key_again(chat: Chat, superuser: User) -> None:
    """REL-1302: the owner takes a model away and types a new key; saying yes would have kept the old one."""
    tenant = chat.tenant
    shared = share(owns(superuser), tenant)
    Bud.objects.for_workspace(tenant.workspace).update(provider=row_of(tenant), model="big")
    given = {
        "name": "Shared",
        "base_url": shared.base_url,
        "default_model": "m",
        "offer": OfferedModels.DEFAULT.value,
        "chosen_models": "",
        "api_key": KEY,
    }
    root = signed_in(superuser)
    asked = root.post(reverse("chat:shared_provider_edit", args=[shared.pk]), given)
    assert asked.status_code == 422
    errors = asked.context["form"].errors
    assert "takes_away" in errors
    assert errors["api_key"] == [str(ENTER_AGAIN)]
    assert KEY not in asked.content.decode()


def test_a_refused_server_asks_for_its_secret_again(chat: Chat) -> None:
    """REL-1302: the same of servers."""
    page = chat.tenant.client("admin").post(
        reverse("mcp_servers:add", args=[chat.tenant.workspace.slug]),
        {
            "name": "new",
            "url": "ftp://nowhere.example",
            "auth_type": "bearer",
            "auth_secret": KEY,
            "transport": "auto",
            "protocol": "auto",
        },
    )
    assert str(ENTER_AGAIN) in page.content.decode()
    assert KEY not in page.content.decode()
