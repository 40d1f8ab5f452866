"""What a workspace sees of a provider that the platform's owner shares with it, and what it can do there."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from chat.models import Bud, ModelProvider, ProviderModel, SharedProvider
from chat.providers.choosing import provider_for
from chat.providers.errors import ProviderSwitchedOff
from chat.services.models import models_of
from chat.services.shared_providers import (
    delete_shared_provider,
    give_provider,
    switch_shared_provider,
    withdraw_provider,
)
from config.workspace_files import WorkspaceTarget, apply_file, write_workspace
from tests.chat.conftest import Chat
from tests.chat.providers.sharing import (
    KEY,
    NEW_KEY,
    row_of,
    share,
)
from tests.chat.providers.usage import make_bud
from tests.chat.providers.workspace_side import api, edit_page, filled
from tests.factories import Tenant, TwoTenants
from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.yaml_text import read_yaml

PRICED = "https://api.openai.com/v1"
"""An address whose published prices Trellis knows."""


def pages_of(tenant: Tenant) -> list[str]:
    """Where admins of a workspace meet its providers."""
    row, slug = row_of(tenant), tenant.workspace.slug
    return [
        reverse("chat:provider", args=[slug, row.pk]),
        reverse("admin:chat_modelprovider_changelist"),
        reverse("admin:chat_modelprovider_change", args=[row.pk]),
        reverse("admin:chat_modelprovider_history", args=[row.pk]),
        reverse("admin:chat_providermodel_changelist"),
        f"/w/{slug}/buds/new/",
        f"/w/{slug}/audit/",
        reverse("workspace_file", args=[slug]),
    ]


@pytest.mark.django_db
def test_no_page_of_a_workspace_shows_address_or_key(tenant: Tenant, owner: Actor) -> None:
    """SEC-455: nor does REST or the file of the workspace; each says that the platform shares it."""
    share(owner, tenant)
    for role in ("owner", "admin"):
        client = tenant.client(role)
        for page in pages_of(tenant):
            answer = client.get(page, follow=True)
            assert answer.status_code in (200, 403), page
            assert "shared-canary" not in answer.content.decode(), page
    client = tenant.client("admin")
    for page in pages_of(tenant)[:3]:
        assert "Shared by the platform" in client.get(page).content.decode(), page
    assert "Change the key" not in client.get(pages_of(tenant)[0]).content.decode()
    answer = api(tenant, "GET")
    assert "shared-canary" not in answer.content.decode()
    [row] = answer.json()["results"]
    assert (row["is_shared"], row["base_url"], row["has_key"], row["withheld"]) == (
        True,
        "",
        False,
        "",
    )


@pytest.mark.django_db
def test_an_admin_says_what_is_the_workspaces_and_nothing_more(
    tenant: Tenant, owner: Actor
) -> None:
    """REL-940: its default model, whether it is on, and who stands in; what is posted beside that changes nothing."""
    shared = share(owner, tenant)
    row, client = row_of(tenant), tenant.client("admin")
    posted = filled(
        row,
        default_model="small",
        name="Mine",
        base_url="https://mine.example.org/v1",
        new_api_key=NEW_KEY,
        untested_key="on",
        most_at_once="1",
    )
    del posted["is_active"]
    assert client.post(edit_page(row), posted).status_code == 302
    row.refresh_from_db()
    assert (row.default_model, row.is_active) == ("small", False)
    assert (row.name, row.base_url, row.api_key, row.most_at_once) == ("Shared", "", None, None)
    shared.refresh_from_db()
    assert shared.api_key is not None
    assert shared.api_key.reveal("test") == KEY
    delete = reverse("admin:chat_modelprovider_delete", args=[row.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403
    for body in ({"base_url": "https://mine.example.org/v1"}, {"api_key": NEW_KEY}, {"name": "X"}):
        refused = api(tenant, "PATCH", f"{row.pk}/", **body)
        assert refused.status_code == 422
        assert [one["attr"] for one in refused.json()["errors"]] == list(body)
    rotated = api(tenant, "POST", f"{row.pk}/rotate-key/", api_key=NEW_KEY)
    assert (rotated.status_code, rotated.json()["errors"][0]["attr"]) == (422, "api_key")
    changed = api(tenant, "PATCH", f"{row.pk}/", is_active=True, default_model="m")
    assert (changed.status_code, changed.json()["is_active"]) == (200, True)


def test_a_workspace_tests_it_and_keeps_models_and_prices(
    chat: Chat, shared: SharedProvider
) -> None:
    """REL-940: with the platform's key and address, as for a provider of its own."""
    chat.model.models = {"data": [{"id": "big", "context_length": 9000}]}
    page = reverse("chat:provider", args=[chat.tenant.workspace.slug, row_of(chat.tenant).pk])
    client = chat.tenant.client("admin")
    assert "big" in client.post(page).content.decode()
    assert client.post(page, {"keep": "1", "models": ["big"]}).status_code == 302
    kept = ProviderModel.objects.for_workspace(chat.tenant.workspace).get(model="big")
    assert (kept.provider, kept.context_tokens) == (row_of(chat.tenant), 9000)
    refused = client.post(page, {"api_key": NEW_KEY})
    assert refused.status_code == 422
    assert "only the platform&#x27;s owner sets this" in refused.content.decode()
    assert shared.name in client.get(page).content.decode()
    checked = api(chat.tenant, "POST", f"{row_of(chat.tenant).pk}/check/")
    assert [one["name"] for one in checked.json()["models"]] == ["big"]


@pytest.mark.django_db
def test_people_choose_its_models_at_its_list_prices(
    tenant: Tenant, owner: Actor, django_assert_num_queries: Any
) -> None:
    """REL-940: two statements more, for addresses and lists, however many are shared."""
    for number in range(3):
        share(owner, tenant, name=f"Shared {number}", base_url=PRICED, default_model="gpt-5-mini")
    with django_assert_num_queries(5):
        found = models_of(tenant.workspace.pk)
    chosen = [one for one in found if one.provider_name.startswith("Shared")]
    assert len(chosen) == 3
    assert all(one.prices_listed_on is not None for one in chosen)


@pytest.mark.django_db
def test_pages_say_why_it_does_not_answer(
    tenant: Tenant, owner: Actor, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-940, REL-2481: a withdrawn one that something still uses may be deleted once nothing does."""
    shared = share(owner, tenant)
    client, row = tenant.client("admin"), row_of(tenant)
    bud = make_bud(tenant, "Notes")
    bud.provider = row
    bud.save()
    page = reverse("chat:provider", args=[tenant.workspace.slug, row.pk])
    switch_shared_provider(shared=shared, is_active=False, actor=owner)
    assert "they have switched it off" in client.get(page).content.decode()
    assert "they have switched it off" in client.post(page).content.decode()
    assert "they have switched it off" in client.get(edit_page(row)).content.decode()
    assert "switched off there" in client.get("/admin/chat/modelprovider/").content.decode()
    caplog.clear()
    assert api(tenant, "POST", f"{row.pk}/check/").status_code == 502
    (line,) = [one for one in caplog.records if one.name.startswith("django_structlog")]
    assert isinstance(line.msg, dict)
    assert (line.msg["code"], line.msg["error"]) == (502, ProviderSwitchedOff.code)
    assert (line.msg["event"], line.exc_info) == ("request_finished", None)
    withdraw_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    assert "no longer shared with this workspace" in client.get(page).content.decode()
    assert client.get(f"/w/{tenant.workspace.slug}/buds/{bud.pk}/").status_code == 200
    Bud.objects.for_workspace(tenant.workspace).update(provider=None)
    delete = reverse("admin:chat_modelprovider_delete", args=[row.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 302
    switch_shared_provider(shared=shared, is_active=True, actor=owner)
    give_provider(shared=shared, workspace=tenant.workspace, actor=owner)
    assert row_of(tenant).answers


@pytest.mark.django_db(transaction=True)
def test_a_workspace_makes_what_was_deleted_its_own(tenant: Tenant, owner: Actor) -> None:
    """REL-934: its page says what happened; a test fails in words, and it is on again with an address alone."""
    shared = share(owner, tenant)
    bud = make_bud(tenant, "Notes")
    bud.provider = row_of(tenant)
    bud.save()
    delete_shared_provider(shared=shared, actor=owner)
    row = ModelProvider.objects.for_workspace(tenant.workspace).get()
    client = tenant.client("admin")
    page = reverse("chat:provider", args=[tenant.workspace.slug, row.pk])
    assert "Whoever runs Trellis no longer shares it" in client.get(page).content.decode()
    assert "connect to the model provider" in client.post(page).content.decode()
    assert "none any more" in client.get("/admin/chat/modelprovider/").content.decode()
    refused = api(tenant, "PATCH", f"{row.pk}/", is_active=True)
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (422, "base_url")
    limits = {"most_at_once": "", "most_a_minute": "", "new_api_key": ""}
    refused = client.post(edit_page(row), filled(row, name="Ours", base_url="", **limits))
    assert list(refused.context["adminform"].form.errors) == ["base_url"]
    ours = filled(row, name="Ours", base_url=PRICED, **limits)
    assert client.post(edit_page(row), ours).status_code == 302
    bud.refresh_from_db()
    assert provider_for(bud).base_url == PRICED


@pytest.mark.django_db
def test_the_file_of_a_workspace_names_it(two_workspaces: TwoTenants, owner: Actor) -> None:
    """REL-941: without address and key; where it is not shared, or is another kind, that is a fault at its field."""
    a, b = two_workspaces.a, two_workspaces.b
    shared = share(owner, a)
    bud = make_bud(a, "Notes")
    bud.provider = row_of(a)
    bud.save()
    here, there = (WorkspaceTarget(one.workspace, one.actor("owner")) for one in (a, b))
    text = write_workspace(here)
    assert "shared-canary" not in text
    document: Any = read_yaml(text)
    named = {"name": "Shared", "shared": True, "default_model": "m"}
    assert document["providers"] == [named]
    apply_file(here, document)
    assert write_workspace(here) == text
    with pytest.raises(InvalidInput) as refused:
        apply_file(there, document)
    assert list(refused.value.fields) == ["providers.Shared.shared"]
    give_provider(shared=shared, workspace=b.workspace, actor=owner)
    document["providers"][0]["default_model"] = "small"
    apply_file(there, document)
    assert row_of(b).default_model == "small"
    copied = Bud.objects.for_workspace(b.workspace).get(slug=bud.slug)
    assert provider_for(copied).shared_id == shared.pk
    for change, field in (
        ({"base_url": "https://mine.example.org/v1"}, "base_url"),
        ({"api_key": NEW_KEY}, "api_key"),
        ({"most_at_once": 2}, "most_at_once"),
        ({"shared": False}, "shared"),
    ):
        with pytest.raises(InvalidInput) as refused:
            apply_file(here, {"providers": [{**named, **change}]})
        assert list(refused.value.fields) == [f"providers.Shared.{field}"]
    ModelProvider.objects.create(
        workspace=a.workspace, name="Own", base_url=PRICED, default_model="m"
    )
    with pytest.raises(InvalidInput) as refused:
        apply_file(here, {"providers": [{**named, "name": "Own"}]})
    assert list(refused.value.fields) == ["providers.Own.shared"]
