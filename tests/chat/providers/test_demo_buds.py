"""Buds that the demo model answers for, once a workspace has a model of its own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from audit.actions import Action
from audit.models import AuditEntry
from chat.models import Bud, ModelProvider
from chat.providers.base import ProviderSpec
from chat.services.check_plans import change_plan
from chat.services.demo_buds import demo_buds, give_model_to_demo_buds
from tests.chat.conftest import Chat
from tests.chat.services.checking import check
from tests.factories import Tenant, make_tenant
from workspaces.errors import PermissionDenied

pytestmark = pytest.mark.django_db
NEW = "/w/{}/buds/new/"
HEADING = "Buds that still answer with the demo model"


@pytest.fixture
def provider(chat: Chat) -> ModelProvider:
    """The workspace's model; one bud uses it already."""
    return ModelProvider.objects.for_workspace(chat.tenant.workspace).get()


def add_bud(tenant: Tenant, name: str, **fields: Any) -> Bud:
    made: Bud = Bud.objects.create(
        workspace=tenant.workspace, name=name, slug=name.lower(), **fields
    )
    return made


def where(provider: ModelProvider) -> str:
    return f"/w/{provider.workspace.slug}/providers/{provider.pk}/"


def boot_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script[^>]*id="boot"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


def test_one_click_lets_a_new_model_answer_for_all_buds(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-1665: the start page leads there; each bud gets a version, and the log an entry; others' buds stay."""
    tenant = chat.tenant
    for name in ("Clock", "Writer"):
        add_bud(tenant, name, model="gpt-old")
    add_bud(tenant, "Stored", is_archived=True)
    add_bud(tenant, "Mine", visibility="private", owner=tenant.people["member"])
    other = add_bud(make_tenant("elsewhere"), "Clock")
    client = tenant.client("admin")
    home = f"/w/{tenant.workspace.slug}/"
    assert boot_of(client.get(home).content.decode())["urls"]["own_model"] == (
        f"{where(provider)}#demo-buds"
    )
    assert boot_of(tenant.client("member").get(home).content.decode())["urls"]["own_model"] is None
    page = client.get(where(provider)).content.decode()
    assert HEADING in page
    assert "Clock, Writer<" in page
    before = chat.bud.version
    page = client.post(where(provider), {"demo_buds": "1"}, follow=True).content.decode()
    assert "answers for 2 buds from now on." in page
    assert HEADING not in page
    for bud in Bud.objects.for_workspace(tenant.workspace).filter(name__in=["Clock", "Writer"]):
        assert (bud.provider_id, bud.model, bud.versions.count()) == (provider.pk, "", 2)
        assert bud.versions.order_by("-number")[0].note.startswith("Answers with")
        entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(
            action=Action.CONFIG_CHANGED
        )
        assert any(entry.details.get("id") == str(bud.pk) for entry in entries)
    kept = Bud.objects.across_workspaces().filter(name__in=["Stored", "Mine"])
    assert {bud.provider_id for bud in kept} == {None}
    other.refresh_from_db()
    chat.bud.refresh_from_db()
    assert (other.provider_id, chat.bud.version) == (None, before)


def test_a_bud_that_demands_its_checks_undoes_nothing_of_the_others(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-1665: the page names it with the reason."""
    Bud.objects.for_workspace(chat.tenant.workspace).update(provider=None)
    check(chat)
    change_plan(bud=chat.bud, actor=chat.tenant.actor("admin"), before_saving=True)
    add_bud(chat.tenant, "Clock")
    client = chat.tenant.client("admin")
    page = client.post(where(provider), {"demo_buds": "1"}, follow=True).content.decode()
    assert "answers for 1 bud from now on." in page
    assert f"{chat.bud.name}: " in page
    assert HEADING in page


def test_only_who_manages_buds_gives_them_a_model(chat: Chat, provider: ModelProvider) -> None:
    """REL-1665: members may not, and a provider that is off answers for none."""
    add_bud(chat.tenant, "Clock")
    member = chat.tenant.client("member")
    assert member.post(where(provider), {"demo_buds": "1"}).status_code == 403
    with pytest.raises(PermissionDenied):
        give_model_to_demo_buds(provider=provider, actor=chat.tenant.actor("member"))
    provider.is_active = False
    provider.save(update_fields=["is_active"])
    client = chat.tenant.client("admin")
    assert HEADING not in client.get(where(provider)).content.decode()
    client.post(where(provider), {"demo_buds": "1"})
    assert demo_buds(chat.tenant.workspace.pk, chat.tenant.actor("admin")).count() == 1


def test_nothing_is_offered_where_the_platform_has_a_real_model(
    chat: Chat, provider: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1665: its buds are well as they are."""
    add_bud(chat.tenant, "Clock")
    real = ProviderSpec(name="P", base_url="https://x.example/v1", model="m", is_platforms=True)
    monkeypatch.setattr("chat.services.demo_buds.platform_provider", lambda: real)
    client = chat.tenant.client("admin")
    assert HEADING not in client.get(where(provider)).content.decode()
    home = client.get(f"/w/{chat.tenant.workspace.slug}/").content.decode()
    assert boot_of(home)["urls"]["own_model"] is None
    assert (
        client.get(NEW.format(chat.tenant.workspace.slug)).context["form"]["model"].value() == "|"
    )


def test_a_new_bud_begins_with_the_workspaces_own_model(
    chat: Chat, provider: ModelProvider
) -> None:
    """REL-1666: and with the demo model only where there is no other."""
    client = chat.tenant.client("admin")
    new = NEW.format(chat.tenant.workspace.slug)
    assert client.get(new).context["form"]["model"].value() == f"{provider.pk}|"
    provider.is_active = False
    provider.save(update_fields=["is_active"])
    assert client.get(new).context["form"]["model"].value() == "|"
