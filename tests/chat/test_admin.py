"""Buds, tools and offers in the admin: the same rules as everywhere else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.urls import reverse

from audit.models import AuditEntry, OutsideWrite
from chat.models import Bud, ModelProvider, ProviderModel
from chat.pages.bud_form import initial_of
from chat.services.buds import update_bud
from chat.services.providers import ProviderDraft, change_provider
from mcp_servers.models import ApprovalOverride, McpPrompt, McpResource, McpServer, ServerScope
from tests.factories import Tenant
from tests.mcp_servers.factories import stored_tool
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db


def a_server(tenant: Tenant, name: str, **fields: Any) -> McpServer:
    return McpServer.objects.create(
        workspace=tenant.workspace,
        name=name,
        transport="streamable_http",
        url="https://x.example.org/mcp",
        is_active=False,
        **fields,
    )


@pytest.fixture
def personal(tenant: Tenant) -> McpServer:
    """A member's own server."""
    return a_server(tenant, "Slack", owner=tenant.member, scope=ServerScope.PERSONAL)


@pytest.fixture
def bud(tenant: Tenant) -> Bud:
    return Bud.objects.create(workspace=tenant.workspace, slug="helper", name="Helper")


def form_data(bud: Bud, **changes: Any) -> dict[str, Any]:
    values = {**initial_of(bud), **changes}
    values["mcp_config"] = json.dumps(values["mcp_config"])
    return {name: value for name, value in values.items() if value not in (False, None)}


def editor(tenant: Tenant, bud: Bud | None = None) -> str:
    return f"/w/{tenant.workspace.slug}/buds/{bud.pk if bud else 'new'}/"


def change_page(row: Any) -> str:
    name = f"{row._meta.app_label}_{row._meta.model_name}"
    return reverse(f"admin:{name}_change", args=[row.pk])


def test_the_admin_opens_the_one_editor(tenant: Tenant, bud: Bud) -> None:
    """REL-447: for a new bud and for one that is there."""
    client = tenant.client("admin")
    assert client.get(change_page(bud)).headers["Location"] == editor(tenant, bud)
    assert client.get(reverse("admin:chat_bud_add")).headers["Location"] == editor(tenant)


@pytest.mark.parametrize("where", ["servers", "available_tools"])
def test_nobody_puts_another_persons_server_into_a_bud(
    tenant: Tenant, bud: Bud, personal: McpServer, where: str
) -> None:
    """SEC-226: neither as a server nor by one of its tools; the form says why."""
    client = tenant.client("admin")
    page = client.get(editor(tenant, bud)).content.decode()
    assert str(personal.pk) not in page
    assert "Slack" not in page
    named = str(personal.pk) if where == "servers" else f"{personal.pk}.read"
    answer = client.post(editor(tenant, bud), form_data(bud, mcp_config={where: [named]}))
    bud.refresh_from_db()
    assert str(personal.pk) not in json.dumps(bud.mcp_config)
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()


def test_the_rule_is_the_services(tenant: Tenant, bud: Bud, personal: McpServer) -> None:
    """SEC-226: whoever calls; and what an old bud names hinders no other change of it."""
    config = {"servers": [str(personal.pk)]}
    with pytest.raises(InvalidInput):
        update_bud(bud=bud, actor=tenant.actor("admin"), values={"mcp_config": config})
    Bud.objects.for_workspace(tenant.workspace).filter(pk=bud.pk).update(mcp_config=config)
    bud.refresh_from_db()
    update_bud(bud=bud, actor=tenant.actor("admin"), values={"description": "x"})
    api = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    answer = api.get(f"/api/buds/{bud.pk}/")
    assert answer.status_code == 200
    assert "Slack" not in answer.content.decode()


def test_a_bud_is_made_and_changed_by_the_form(tenant: Tenant) -> None:
    """SEC-226: through the service, so that it is recorded once, and no write passes it."""
    shared = a_server(tenant, "shared")
    client = tenant.client("admin")
    OutsideWrite.objects.all().delete()
    draft = Bud(slug="new", name="New", mcp_config={"servers": [str(shared.pk)]})
    given = {"starter_prompts": "Hello\n\nHow are you?", "base_version": ""}
    answer = client.post(editor(tenant), form_data(draft, **given))
    assert answer.status_code == 302, answer.content.decode()
    made = Bud.objects.for_workspace(tenant.workspace).get(slug="new")
    assert made.mcp_config == {"servers": [str(shared.pk)]}
    assert made.starter_prompts == ["Hello", "How are you?"]
    assert made.parameters == {}
    changes: dict[str, Any] = {"name": "Renamed", "mcp_config": {"servers": []}}
    answer = client.post(editor(tenant, made), form_data(made, **changes))
    assert answer.status_code == 302, answer.content.decode()
    made.refresh_from_db()
    assert (made.name, made.mcp_config) == ("Renamed", {"servers": []})
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert entries.filter(actor_id=tenant.admin.pk).count() == 2
    assert not OutsideWrite.objects.exists()


def test_a_value_that_does_not_fit_is_told_on_the_form(tenant: Tenant, bud: Bud) -> None:
    """Ours: the service's refusal is a sentence at its field, and no error page."""
    config = {"tool_choice": "whatever"}
    answer = tenant.client("admin").post(editor(tenant, bud), form_data(bud, mcp_config=config))
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()


@pytest.mark.parametrize("config", ["9" * 5_000, "[" * 3_000, '{"servers":' * 2_000, "NaN", "{"])
def test_tools_that_cannot_be_read_are_told(tenant: Tenant, bud: Bud, config: str) -> None:
    """SEC-767, SEC-76: a clear message, wherever the editor sends them."""
    client = tenant.client("admin")
    values = {**form_data(bud), "mcp_config": config}
    slug = tenant.workspace.slug
    for address in (
        editor(tenant, bud),
        reverse("chat:bud_new", args=[slug]),
        reverse("chat:bud_check", args=[slug, bud.pk]),
        reverse("chat:bud_test", args=[slug]),
    ):
        answer = client.post(address, values)
        assert 400 <= answer.status_code < 500, (address, answer.status_code)


def test_offers_are_switched_by_their_services(tenant: Tenant) -> None:
    """SEC-226: tools, resources and prompts on their pages in the admin."""
    server = a_server(tenant, "shared")
    now = server.created_at
    tool = stored_tool(server)
    resource = McpResource.objects.create(
        workspace=tenant.workspace, server=server, uri="note://x", last_seen_at=now
    )
    prompt = McpPrompt.objects.create(
        workspace=tenant.workspace, server=server, name="x", last_seen_at=now
    )
    client = tenant.client("admin")
    OutsideWrite.objects.all().delete()
    for row in (tool, resource, prompt):
        data = {"approval_override": "deny"} if row is tool else {}
        assert client.post(change_page(row), data).status_code == 302
        row.refresh_from_db()
        assert row.is_enabled is False
    assert tool.approval_override == ApprovalOverride.DENY
    assert not OutsideWrite.objects.exists()


def test_each_field_of_a_providers_models_has_a_name(tenant: Tenant) -> None:
    """REL-668: the table names its columns for the eye; a screen reader needs a name at the field."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example.org"
    )
    ProviderModel.objects.create(workspace=tenant.workspace, provider=provider, model="m")
    page = tenant.client("owner").get(change_page(provider)).content.decode()
    fields = re.findall(r'<(?:input|select)[^>]* name="known_models-0-[a-z]+_[^>]*>', page)
    assert fields
    assert not [field for field in fields if "aria-label=" not in field]


@pytest.mark.parametrize("field", ["prompt_price", "cached_price", "completion_price"])
def test_a_price_below_zero_is_refused_at_its_field(tenant: Tenant, field: str) -> None:
    """REL-3323: what else was typed stays, on the model's page and in its provider's table."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://m.example.org", default_model="m"
    )
    client = tenant.client("admin")
    answer = client.post(reverse("admin:chat_providermodel_add"), {"model": "typed", field: "-1"})
    assert answer.status_code == 200
    form = answer.context["adminform"].form
    assert form.errors == {field: ["A price is not below zero."]}
    assert 'value="typed"' in answer.content.decode()
    sizes = {"TOTAL_FORMS": "1", "INITIAL_FORMS": "0", "MIN_NUM_FORMS": "0", "MAX_NUM_FORMS": "99"}
    table = {f"known_models-{name}": value for name, value in sizes.items()}
    row = {"known_models-0-model": "typed", f"known_models-0-{field}": "-1"}
    values = {"name": "renamed", "base_url": provider.base_url, "default_model": "m"}
    answer = client.post(change_page(provider), {**values, **table, **row})
    assert "A price is not below zero." in answer.content.decode()
    assert 'value="typed"' in answer.content.decode()
    provider.refresh_from_db()
    assert provider.name == "p"


@pytest.mark.parametrize(("typed", "kept"), [("Ga\u202erden\u200b", "Garden"), ("\u200b", "Shown")])
def test_what_nobody_sees_is_no_part_of_a_providers_name(
    tenant: Tenant, typed: str, kept: str
) -> None:
    """REL-3321: a name of nothing else is refused at its field."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace, name="Shown", base_url="https://m.example.org"
    )
    sizes = {"TOTAL_FORMS": "0", "INITIAL_FORMS": "0", "MIN_NUM_FORMS": "0", "MAX_NUM_FORMS": "99"}
    values = {f"known_models-{name}": value for name, value in sizes.items()}
    values |= {"name": typed, "base_url": provider.base_url, "default_model": "m"}
    answer = tenant.client("admin").post(change_page(provider), values)
    provider.refresh_from_db()
    assert provider.name == kept
    if kept == "Shown":
        assert answer.context["adminform"].form.errors == {"name": ["This field is required."]}
        return
    draft = ProviderDraft(name=f"{typed}s", base_url=provider.base_url, default_model="m")
    change_provider(provider=provider, draft=draft, actor=tenant.actor("admin"))
    assert provider.name == "Gardens"


def test_a_provider_is_not_offered_to_stand_in_for_itself(tenant: Tenant) -> None:
    """REL-3322: the form offered it, and refused it."""
    first, other = (
        ModelProvider.objects.create(
            workspace=tenant.workspace, name=name, base_url="https://m.example.org"
        )
        for name in ("first", "other")
    )
    form = tenant.client("admin").get(change_page(first)).context["adminform"].form
    assert list(form.fields["fallback"].queryset) == [other]


def test_a_provider_with_thousands_of_models_keeps_a_form_that_can_be_saved(tenant: Tenant) -> None:
    """REL-734: its models are then changed one by one, and an address that may not be called is told at its field."""
    provider = ModelProvider.objects.create(
        workspace=tenant.workspace,
        name="many",
        base_url="https://m.example.org/v1",
        default_model="m-1",
    )
    ProviderModel.objects.bulk_create(
        ProviderModel(workspace=tenant.workspace, provider=provider, model=f"m-{number}")
        for number in range(5_000)
    )
    client = tenant.client("admin")
    where = reverse("admin:chat_modelprovider_change", args=[provider.pk])
    page = client.get(where).content.decode()
    assert len(page) < 200_000
    assert ">5,000 models</a>" in page
    listed = client.get(reverse("admin:chat_providermodel_changelist"), {"q": "m-4999"})
    assert b"m-4999" in listed.content
    draft = {"name": "renamed", "base_url": provider.base_url, "default_model": "m-1"}
    refused = client.post(where, {**draft, "base_url": "http://169.254.169.254/v1"})
    assert refused.status_code == 200
    assert b'id="id_base_url_error"' in refused.content
    assert client.post(where, draft).status_code == 302
    provider.refresh_from_db()
    assert (provider.name, provider.base_url) == ("renamed", "https://m.example.org/v1")
