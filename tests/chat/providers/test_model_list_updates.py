"""Asking providers for their models once a day, and telling what is new, gone and going to end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.urls import reverse

from chat.models import (
    Bud,
    ListChanges,
    ModelProvider,
    ProviderList,
    ProviderModel,
    SharedProviderList,
)
from chat.models.provider_lists import ENVIRONMENTS, MOST_CHANGES, MOST_NAMES
from chat.providers.choosing import platform_provider
from chat.providers.known_lists import digest_of
from chat.providers.list_changes import changes_after, first_changes
from chat.providers.listing import ListedModel, ModelListing
from chat.services import model_list_updates
from chat.services.changed_models import ending_models, gone_models, used_models
from chat.services.model_list_updates import look_at_lists
from chat.services.models import models_of
from chat.services.parts_of_shared import PartDraft, change_part
from tests.chat.providers.sharing import (
    KEY,
    row_of,
    share,
)
from tests.chat.providers.usage import make_bud
from tests.chat.providers.workspace_side import api
from tests.factories import Tenant, TwoTenants
from tests.fakes.scripted_model import ScriptedModel
from workspaces.actors import Actor

TODAY = date(2026, 11, 24)


def listing(*names: str, left_out: int = 0, **ends: date) -> ModelListing:
    models = [ListedModel(name=name, ends_on=ends.get(name)) for name in names]
    return ModelListing(models=tuple(models), left_out=left_out, took_ms=1)


@pytest.fixture
def provider(tenant: Tenant, model: ScriptedModel) -> ModelProvider:
    """A workspace's own provider, which lists two models."""
    model.models = {"data": [{"id": "big"}, {"id": "small"}]}
    model.keys = {KEY}
    return ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="Own",
        base_url=model.base_url,
        api_key=KEY,
        default_model="small",
    )


def a_day_later() -> None:
    """Have every list be a day old."""
    day = timedelta(days=1)
    ProviderList.objects.across_workspaces().update(asked_at=F("asked_at") - day)
    SharedProviderList.objects.update(asked_at=F("asked_at") - day)


def known(provider: ModelProvider) -> ProviderList:
    return ProviderList.objects.for_workspace(provider.workspace_id).get(provider=provider)


def test_a_first_list_has_nothing_new_and_nothing_gone() -> None:
    """REL-1034: it only tells what ends."""
    found = first_changes(listing("a", "b", b=TODAY))
    assert found == ListChanges(ends={"b": TODAY})


def test_what_came_and_went_is_known_with_its_day() -> None:
    """REL-1034: what is back is neither, and what has been new for a month is no longer new."""
    before = ListChanges(new={"old": TODAY - timedelta(days=40)}, gone={"back": TODAY})
    after = changes_after(before, ["old", "went"], listing("old", "came", "back"), TODAY)
    assert after == ListChanges(new={"came": TODAY}, gone={"went": TODAY})
    later = changes_after(
        after, ["old", "came", "back"], listing("came", "back"), date(2026, 11, 25)
    )
    assert later.gone == {"old": date(2026, 11, 25), "went": TODAY}
    assert list(later.gone) == ["old", "went"]


def test_a_list_that_is_cut_off_says_nothing_of_what_is_missing() -> None:
    """REL-1035: it may be in the rest. What is remembered has an end."""
    names = [f"m{number}" for number in range(MOST_CHANGES + 5)]
    assert changes_after(ListChanges(), ["x"], listing("a", left_out=1), TODAY).gone == {}
    assert len(changes_after(ListChanges(), names, listing("a"), TODAY).gone) == MOST_CHANGES
    assert len(changes_after(ListChanges(), [], listing(*names), TODAY).new) == MOST_CHANGES


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_engines
def test_each_provider_is_asked_once_a_day_with_its_key(
    provider: ModelProvider, model: ScriptedModel
) -> None:
    """REL-1034: what an admin entered of a model stays, and no row of a model is made or changed."""
    row = ProviderModel.objects.create(
        workspace_id=provider.workspace_id,
        provider=provider,
        model="small",
        prompt_price=Decimal(7),
        calls_tools=False,
    )
    assert look_at_lists() == 1
    assert look_at_lists() == 0
    model.models = {
        "data": [
            {"id": "small", "pricing": {"prompt": "1"}, "supported_parameters": ["tools"]},
            {"id": "new-one", "deprecation": "2026-12-24T12:00:00Z"},
        ]
    }
    a_day_later()
    assert look_at_lists() == 1
    today = datetime.now(UTC).date()
    assert known(provider).list_changes == ListChanges(
        new={"new-one": today}, gone={"big": today}, ends={"new-one": date(2026, 12, 24)}
    )
    row.refresh_from_db()
    assert (row.prompt_price, row.calls_tools, row.told_calls_tools) == (Decimal(7), False, None)
    assert ProviderModel.objects.for_workspace(provider.workspace_id).count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"data": []}, 200, "The provider's list of models is empty."),
        ("<html>", 200, "does not return a list of models"),
        ({"error": "no"}, 500, "returned an error"),
        ({"error": "key"}, 401, "refused the API key"),
    ],
)
def test_a_list_that_fails_or_is_empty_changes_nothing(
    provider: ModelProvider, model: ScriptedModel, body: Any, status: int, message: str
) -> None:
    """REL-1035: nothing is called gone; the provider's page says why there was no list."""
    look_at_lists()
    a_day_later()
    model.models, model.models_status = body, status
    assert look_at_lists() == 1
    row = known(provider)
    assert message in row.fault
    assert KEY not in row.fault
    assert (row.names, row.list_changes) == (["big", "small"], ListChanges())
    a_day_later()
    model.models, model.models_status = {"data": [{"id": "small"}]}, 200
    look_at_lists()
    row = known(provider)
    assert (row.fault, list(row.list_changes.gone)) == ("", ["big"])


@pytest.mark.django_db(transaction=True)
def test_five_thousand_models_are_a_list_too(
    provider: ModelProvider, model: ScriptedModel, tenant: Tenant
) -> None:
    """REL-1035: the page shows the newest ones and how many more there are."""
    look_at_lists()
    a_day_later()
    model.models = {"data": [{"id": f"m-{number:05}"} for number in range(MOST_NAMES + 1)]}
    look_at_lists()
    row = known(provider)
    assert len(row.names) == MOST_NAMES
    assert row.list_changes.gone == {}
    page = reverse("chat:provider", args=[tenant.workspace.slug, provider.pk])
    html = tenant.client("admin").get(page).content.decode()
    assert "480 more models are new" in html


@pytest.mark.django_db(transaction=True)
def test_another_address_has_another_list(provider: ModelProvider, model: ScriptedModel) -> None:
    """REL-1035: what was known of the old one is not told of the new one."""
    look_at_lists()
    ProviderList.objects.for_workspace(provider.workspace_id).update(
        address_digest=digest_of("https://old.example.org/v1"),
        changes={"gone": {"small": "2026-11-24"}},
    )
    assert all(one.gone_since is None for one in models_of(provider.workspace_id))
    a_day_later()
    look_at_lists()
    assert known(provider).list_changes == ListChanges()


@pytest.mark.django_db(transaction=True)
def test_one_that_fails_badly_keeps_no_other_from_being_asked(
    provider: ModelProvider, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1035: nor does one that was switched off get a question; a run has an end."""
    row = ModelProvider.objects.create(
        workspace_id=provider.workspace_id,
        name="Down",
        base_url="http://127.0.0.1:9/v1",
        default_model="x",
    )
    ModelProvider.objects.create(
        workspace_id=provider.workspace_id,
        name="Off",
        base_url=model.base_url,
        default_model="x",
        is_active=False,
    )
    assert look_at_lists() == 2
    assert known(row).fault
    assert known(provider).names == ["big", "small"]
    a_day_later()
    monkeypatch.setattr(model_list_updates, "MOST_IN_A_RUN", 1)
    assert (look_at_lists(), look_at_lists(), look_at_lists()) == (1, 1, 0)


def seen_gone(provider: ModelProvider, *names: str, **ends: str) -> None:
    """As if these had been missing in the provider's list since 24 November."""
    ProviderList.objects.create(
        workspace_id=provider.workspace_id,
        provider=provider,
        address_digest=digest_of(provider.base_url),
        asked_at=datetime.now(UTC),
        listed_at=datetime.now(UTC),
        names=["small", "fresh"],
        changes={
            "gone": dict.fromkeys(names, "2026-11-24"),
            "new": {"fresh": "2026-11-23"},
            "ends": ends,
        },
    )


def test_admins_read_which_buds_use_a_model_that_is_gone(
    tenant: Tenant, provider: ModelProvider, model: ScriptedModel
) -> None:
    """REL-1036: on the admin's first page and the provider's page, with a way to these buds; over REST, and where a model is chosen."""
    for name, chosen in (("one", "big"), ("two", "big"), ("three", ""), ("four", "big")):
        bud = make_bud(tenant, name)
        bud.provider, bud.model, bud.is_archived = provider, chosen, name == "four"
        bud.save()
    seen_gone(provider, "big", "unused")
    [gone] = gone_models(used_models(tenant.workspace.pk))
    assert (gone.name, gone.buds, gone.gone_since) == ("big", 2, TODAY)
    client = tenant.client("admin")
    sentence = "big has been missing in the list of Own since 24 Nov 2026: 2 buds use it."
    first = client.get("/admin/").content.decode()
    assert sentence in first
    page = client.get(reverse("chat:provider", args=[tenant.workspace.slug, provider.pk]))
    assert sentence in page.content.decode()
    [(_gone, url)] = page.context["news"].gone
    buds = client.get(url).content.decode()
    assert ("one" in buds, ">three<" in buds, ">four<" in buds) == (True, False, False)
    assert tenant.client("member").get("/admin/", follow=True).content.decode().count("big") == 0
    changes = api(tenant, "GET", f"{provider.pk}/list-changes/").json()
    assert changes["gone"] == {"big": "2026-11-24", "unused": "2026-11-24"}
    [choice] = [one for one in models_of(tenant.workspace.pk) if one.name == "big"]
    assert choice.gone_since == TODAY
    editor = client.get(f"/w/{tenant.workspace.slug}/buds/new/").content.decode()
    assert "no longer in its provider&#x27;s list since 24 Nov 2026" in editor


def test_buds_that_take_the_default_model_are_found_with_it(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-1036: they have no model of their own."""
    bud = make_bud(tenant, "usual")
    bud.provider = provider
    bud.save()
    seen_gone(provider, "small")
    page = tenant.client("admin").get(
        reverse("chat:provider", args=[tenant.workspace.slug, provider.pk])
    )
    [(gone, url)] = page.context["news"].gone
    assert "1 bud uses it" in gone
    answer = tenant.client("admin").get(url)
    assert answer.status_code == 200
    assert [row.name for row in answer.context["cl"].result_list] == ["usual"]


@pytest.mark.django_db(transaction=True)
def test_a_new_model_is_added_with_one_click(
    tenant: Tenant, provider: ModelProvider, model: ScriptedModel
) -> None:
    """REL-1036: with what the provider tells of it."""
    seen_gone(provider)
    model.models = {"data": [{"id": "fresh", "context_length": 9000}]}
    client = tenant.client("admin")
    page = reverse("chat:provider", args=[tenant.workspace.slug, provider.pk])
    assert 'aria-label="Add fresh"' in client.get(page).content.decode()
    assert client.post(page, {"keep": "1", "models": "fresh"}).status_code == 302
    kept = ProviderModel.objects.for_workspace(tenant.workspace).get(model="fresh")
    assert kept.context_tokens == 9000
    assert 'aria-label="Add fresh"' not in client.get(page).content.decode()


def test_an_end_that_a_list_tells_comes_before_the_shipped_one(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-1036: it is newer."""
    ModelProvider.objects.for_workspace(tenant.workspace).update(
        base_url="https://api.openai.com/v1", default_model="gpt-5-mini"
    )
    provider.refresh_from_db()
    bud = make_bud(tenant, "usual")
    bud.provider = provider
    bud.save()
    seen_gone(provider, **{"gpt-5-mini": "2027-01-02"})
    soon = [one for one in used_models(tenant.workspace.pk) if one.name == "gpt-5-mini"]
    assert [one.ends_on for one in soon] == [date(2027, 1, 2)]
    assert ending_models(soon) == [("gpt-5-mini", date(2027, 1, 2))]


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_engines
def test_a_shared_list_is_asked_for_once_and_told_where_it_concerns(
    two_workspaces: TwoTenants, owner: Actor, model: ScriptedModel
) -> None:
    """SEC-493: whoever may not use a model does not read of it, and no workspace's row holds the list."""
    a, b = two_workspaces.a, two_workspaces.b
    model.models = {"data": [{"id": "m"}, {"id": "secret-one"}]}
    shared = share(owner, a, b, base_url=model.base_url, is_for_all=True)
    assert look_at_lists() == 1
    a_day_later()
    model.models = {"data": [{"id": "m"}, {"id": "secret-two"}]}
    assert look_at_lists() == 1
    part = PartDraft(has_own_offer=True, offered_models=["m"])
    change_part(shared=shared, workspace=b.workspace, draft=part, actor=owner)
    assert not ProviderList.objects.across_workspaces().exists()
    for tenant, sees in ((a, True), (b, False)):
        page = reverse("chat:provider", args=[tenant.workspace.slug, row_of(tenant).pk])
        html = tenant.client("admin").get(page).content.decode()
        assert ("secret-two" in html) == sees
        changes = api(tenant, "GET", f"{row_of(tenant).pk}/list-changes/").content.decode()
        assert ("secret-one" in changes, "secret-two" in changes) == (sees, sees)
        assert model.base_url not in html + changes


@pytest.fixture
def environment(settings: Any, model: ScriptedModel) -> Iterator[None]:
    """The environment gives a provider."""
    settings.TRELLIS = settings.TRELLIS.model_copy(
        update={"openai_base_url": model.base_url, "openai_model": "m"}
    )
    platform_provider.cache_clear()
    yield
    platform_provider.cache_clear()


@pytest.mark.django_db(transaction=True)
def test_the_environments_provider_is_asked_too(
    environment: None, tenant: Tenant, model: ScriptedModel
) -> None:
    """REL-1034: buds without a provider of their own use its models."""
    make_bud(tenant, "plain")
    model.models = {"data": [{"id": "m"}, {"id": "n"}]}
    assert look_at_lists() == 1
    a_day_later()
    model.models = {"data": [{"id": "n"}]}
    assert look_at_lists() == 1
    assert SharedProviderList.objects.get().pk == ENVIRONMENTS
    [gone] = gone_models(used_models(tenant.workspace.pk))
    assert (gone.provider_id, gone.name) == (None, "m")
    first = tenant.client("admin").get("/admin/").content.decode()
    assert "m has been missing in the list of Platform" in first


@pytest.mark.django_db
def test_it_takes_few_statements_however_many_buds_there_are(
    tenant: Tenant, provider: ModelProvider, django_assert_max_num_queries: Any
) -> None:
    """REL-1036: one for the buds, one for the providers, one for their lists."""
    for number in range(12):
        bud = make_bud(tenant, f"bud-{number}")
        bud.provider, bud.model = provider, f"m{number}"
        bud.save()
    seen_gone(provider, "m1")
    with django_assert_max_num_queries(3):
        assert len(used_models(tenant.workspace.pk)) == 12
    assert Bud.objects.for_workspace(tenant.workspace).count() >= 12
