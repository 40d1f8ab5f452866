"""Models and prices over REST, read on the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from audit.models import AuditEntry
from chat.models import Bud, Conversation, ModelProvider, ProviderModel
from tests.factories import Tenant, make_tenant

AS_JSON = "application/json"


class Api:
    """Somebody's calls in one workspace."""

    def __init__(self, tenant: Tenant, role: str = "admin") -> None:
        self._client, self._slug = tenant.client(role), tenant.workspace.slug

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        import json

        return self._client.generic(
            method,
            f"/api/{path}",
            json.dumps(body) if body is not None else "",
            content_type=AS_JSON,
            headers={"X-Workspace": self._slug},
        )


@pytest.fixture
def provider(tenant: Tenant) -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="cloud",
        base_url="https://m.example.org/v1",
        default_model="large",
    )


def test_a_model_is_added_changed_and_removed(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: over REST, and the admin's form and the provider's page show it."""
    api, browser = Api(tenant), tenant.client("admin")
    body = {
        "provider_id": str(provider.pk),
        "model": "large-2",
        "context_tokens": 64000,
        "prompt_price": "2.5",
        "completion_price": "10",
        "calls_tools": True,
    }
    made = api("POST", "provider-models/", body)
    assert made.status_code == 201
    path = f"provider-models/{made.json()['id']}/"
    form = browser.get(reverse("admin:chat_providermodel_change", args=[made.json()["id"]]))
    assert b'value="large-2"' in form.content
    assert b'value="64000"' in form.content
    changed = api("PATCH", path, {"prompt_price": "1.25", "calls_tools": None}).json()
    assert changed["prompt_price"] == "1.250000"
    assert (changed["calls_tools"], changed["completion_price"]) == (None, "10.000000")
    page = browser.get(reverse("chat:provider", args=[tenant.workspace.slug, provider.pk]))
    assert b"large-2" in page.content
    [listed] = api("GET", f"provider-models/?provider={provider.pk}&search=LARGE").json()["results"]
    assert listed["prompt_price"] == "1.250000"
    assert not api("GET", "provider-models/?search=small").json()["results"]
    assert api("DELETE", path).status_code == 204
    assert not ProviderModel.objects.for_workspace(tenant.workspace).exists()
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    verbs = [entry.details["verb"] for entry in entries.order_by("id")]
    assert verbs[-3:] == ["created", "changed", "deleted"]


def test_the_platforms_own_models_have_prices_too(tenant: Tenant) -> None:
    """REL-1106: without a provider, a row is of the platform's own."""
    api = Api(tenant)
    made = api("POST", "provider-models/", {"model": "own", "prompt_price": "1"})
    assert (made.status_code, made.json()["provider_id"]) == (201, None)
    again = api("POST", "provider-models/", {"model": "own"})
    assert (again.status_code, again.json()["errors"][0]["attr"]) == (422, "model")


def test_faults_are_told_at_their_fields(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: the same over REST and on the form."""
    api = Api(tenant)
    foreign = ModelProvider.objects.create(
        workspace=make_tenant("other").workspace,
        name="theirs",
        base_url="https://m.example.org/v1",
        default_model="m",
    )
    row = ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="m")
    for body, field in (
        ({"model": "m", "provider_id": str(provider.pk)}, "model"),
        ({"model": "n", "provider_id": str(foreign.pk)}, "provider_id"),
        ({"model": "n", "prompt_price": "-1"}, "prompt_price"),
        ({"model": "n", "context_tokens": 0}, "context_tokens"),
        ({"model": ""}, "model"),
        ({"model": "n", "learned_protocol": "smoke"}, "learned_protocol"),
    ):
        refused = api("POST", "provider-models/", body)
        assert refused.status_code in {400, 422}, body
        assert refused.json()["errors"][0]["attr"] == field
    where = reverse("admin:chat_providermodel_add")
    form = tenant.client("admin").post(where, {"provider": str(provider.pk), "model": row.model})
    assert "listed already" in form.content.decode()


def test_what_the_platform_withholds_is_not_named(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: neither listed nor entered."""
    from chat.models import SharedProvider

    shared = SharedProvider.objects.create(
        name="s", base_url="https://s.example.org/v1", default_model="a"
    )
    given = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="s",
        default_model="a",
        shared=shared,
        offered_models=["a"],
    )
    for name in ("a", "b"):
        ProviderModel.objects.create(workspace=tenant.workspace, provider=given, model=name)
    api = Api(tenant)
    assert [one["model"] for one in api("GET", "provider-models/").json()["results"]] == ["a"]
    refused = api("POST", "provider-models/", {"provider_id": str(given.pk), "model": "c"})
    assert refused.status_code == 422
    assert api("DELETE", f"providers/{given.pk}/").status_code == 409


def test_members_see_no_prices(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: who manages no buds, manages no models."""
    row = ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="m")
    member = Api(tenant, "member")
    for method, path, body in (
        ("GET", "provider-models/", None),
        ("POST", "provider-models/", {"model": "n"}),
        ("PATCH", f"provider-models/{row.pk}/", {"prompt_price": "1"}),
        ("DELETE", f"provider-models/{row.pk}/", None),
        ("DELETE", f"providers/{provider.pk}/", None),
    ):
        assert member(method, path, body).status_code == 403


def test_the_forms_table_saves_through_the_service(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: what the provider's form adds, changes and removes is read over REST."""
    kept = ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="m")
    gone = ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="old")
    rows = {
        "known_models-TOTAL_FORMS": "3",
        "known_models-INITIAL_FORMS": "2",
        "known_models-0-id": str(kept.pk),
        "known_models-0-provider": str(provider.pk),
        "known_models-0-model": "m",
        "known_models-0-prompt_price": "3",
        "known_models-1-id": str(gone.pk),
        "known_models-1-provider": str(provider.pk),
        "known_models-1-model": "old",
        "known_models-1-DELETE": "on",
        "known_models-2-provider": str(provider.pk),
        "known_models-2-model": "new",
    }
    draft = {"name": "cloud", "base_url": provider.base_url, "default_model": "large"}
    where = reverse("admin:chat_modelprovider_change", args=[provider.pk])
    answer = tenant.client("admin").post(where, {**draft, "is_active": "on", **rows})
    assert answer.status_code == 302
    listed = Api(tenant)("GET", "provider-models/").json()["results"]
    assert [(one["model"], one["prompt_price"]) for one in listed] == [
        ("m", "3.000000"),
        ("new", None),
    ]


def test_a_provider_that_nothing_uses_is_removed(tenant: Tenant, provider: ModelProvider) -> None:
    """REL-1106: one that a bud uses stays, over REST and in the admin."""
    bud = Bud.objects.create(
        workspace=tenant.workspace, name="Planner", slug="planner", provider=provider
    )
    api, browser = Api(tenant), tenant.client("admin")
    refused = api("DELETE", f"providers/{provider.pk}/")
    assert refused.status_code == 409
    assert "Planner" in refused.json()["errors"][0]["detail"]
    where = reverse("admin:chat_modelprovider_delete", args=[provider.pk])
    html = browser.post(where, {"post": "yes"}, follow=True).content.decode()
    assert "still in use by Planner" in html
    bud.delete()
    assert api("DELETE", f"providers/{provider.pk}/").status_code == 204
    page = browser.get(reverse("admin:chat_modelprovider_changelist")).content.decode()
    assert "cloud" not in page


def test_the_page_that_asks_names_what_uses_a_provider(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-1483, REL-1532: the buds that keep it, whose fallback it is, and the chats that chose its models. Test chats go."""
    browser = tenant.client("admin")
    where = reverse("admin:chat_modelprovider_delete", args=[provider.pk])
    of_all = Bud.objects.create(
        workspace=tenant.workspace, name="Planner", slug="planner", provider=provider
    )
    own = Bud.objects.create(
        workspace=tenant.workspace,
        name="Secret diary",
        slug="diary",
        provider=provider,
        owner=tenant.member,
        visibility="owner",
        is_archived=True,
    )
    row = ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="m-2")
    other = Bud.objects.create(workspace=tenant.workspace, name="Other", slug="other")
    Conversation.objects.create(
        workspace=tenant.workspace, owner=tenant.member, bud=other, chosen_model=row
    )
    ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="main",
        base_url=provider.base_url,
        default_model="m",
        fallback=provider,
    )
    asked = browser.get(where).content.decode()
    assert "still in use" in asked
    assert f"/buds/{of_all.pk}/" in asked
    assert "Secret diary" not in asked
    assert "1 bud more" in asked
    assert "1 that only its owner sees and changes" in asked
    assert "“main” asks it when it fails." in asked
    assert "in 1 chat." in asked
    assert ">Delete</button>" not in asked
    refused = Api(tenant)("DELETE", f"providers/{provider.pk}/").json()["errors"][0]["detail"]
    assert refused == "This is still in use by Planner, 1 bud more."
    of_all.delete()
    assert "only its owner sees" in browser.get(where).content.decode()
    refused = Api(tenant)("DELETE", f"providers/{provider.pk}/").json()["errors"][0]["detail"]
    assert refused == "This is still in use by 1 bud of others."
    drafts = Bud.objects.for_workspace(tenant.workspace).filter(pk=own.pk)
    drafts.update(is_draft=True, is_sandboxed=True, is_archived=False)
    assert "A check of a bud uses it now." in browser.get(where).content.decode()
    drafts.update(is_sandboxed=False)
    test_chat = Conversation.objects.create(
        workspace=tenant.workspace, owner=tenant.member, bud=own
    )
    asked = browser.get(where).content.decode()
    assert "No bud uses it." in asked
    assert "This test chat is erased." in asked
    assert "“main” asks it when it fails." in asked
    assert browser.post(where, {"post": "yes"}).status_code == 302
    assert not ModelProvider.objects.for_workspace(tenant.workspace).filter(pk=provider.pk).exists()
    assert not drafts.exists()
    assert not Conversation.objects.for_workspace(tenant.workspace).filter(pk=test_chat.pk).exists()
    assert Bud.objects.for_workspace(tenant.workspace).filter(pk=other.pk).exists()


def test_the_form_suggests_the_models_that_are_known(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-1484: browsers narrow them while somebody types."""
    ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="own-model-7")
    where = reverse("admin:chat_modelprovider_change", args=[provider.pk])
    page = tenant.client("admin").get(where).content.decode()
    assert page.count('<option value="own-model-7"></option>') == 2
    assert 'list="embedding_model-suggestions"' in page


def test_a_name_or_model_that_is_there_already_is_told_at_its_field(
    tenant: Tenant, provider: ModelProvider
) -> None:
    """REL-1490: in the admin, of a new provider and of a stored one, and of a model twice in its table."""
    browser = tenant.client("admin")
    form = {"name": "cloud", "base_url": "https://m.example.org/v1", "default_model": "m"}
    form |= {"known_models-TOTAL_FORMS": "0", "known_models-INITIAL_FORMS": "0"}
    add = reverse("admin:chat_modelprovider_add")
    refused = browser.post(add, form)
    assert refused.status_code == 200
    assert refused.context["adminform"].form.errors == {"name": ["Another provider has this name."]}
    assert browser.post(add, {**form, "name": "other"}).status_code == 302
    row = ModelProvider.objects.for_workspace(tenant.workspace).get(name="other")
    change = reverse("admin:chat_modelprovider_change", args=[row.pk])
    refused = browser.post(change, form)
    assert refused.context["adminform"].form.errors == {"name": ["Another provider has this name."]}
    twice = {
        "known_models-TOTAL_FORMS": "2",
        "known_models-0-model": "same",
        "known_models-0-provider": str(row.pk),
        "known_models-1-model": "same",
        "known_models-1-provider": str(row.pk),
    }
    refused = browser.post(change, {**form, "name": "other", **twice})
    assert refused.status_code == 200
    assert not ProviderModel.objects.for_workspace(tenant.workspace).filter(provider=row).exists()
