"""Actions on several buds, model providers and shared chats in the admin."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import OutsideWrite
from chat.models import Bud, ModelProvider
from chat.services.providers import switch_provider
from tests.chat.conftest import Chat
from tests.factories import CANARY, Tenant, make_tenant
from tests.row_actions import act, notices
from workspaces.errors import Conflict, PermissionDenied

BUDS = "/admin/chat/bud/"
PROVIDERS = "/admin/chat/modelprovider/"


def some_buds(tenant: Tenant, number: int, name: str = "bud") -> list[Bud]:
    return [
        Bud.objects.create(
            workspace=tenant.workspace, slug=f"{name}-{place}", name=f"{name} {place}"
        )
        for place in range(number)
    ]


def a_provider(tenant: Tenant, name: str, url: str = "https://m.example.org/v1") -> ModelProvider:
    return ModelProvider.objects.create(
        workspace=tenant.workspace, name=name, base_url=url, default_model="m"
    )


def test_buds_are_archived_and_put_back(tenant: Tenant) -> None:
    """REL-1190: through the service, so that versions and the log know."""
    rows = some_buds(tenant, 3)
    OutsideWrite.objects.all().delete()
    page = act(tenant.client(), BUDS, "archive", *rows, confirmed=False)
    assert notices(page) == ["3 buds archived. Nobody starts new chats with them."]
    for row in rows:
        row.refresh_from_db()
        assert (row.is_archived, row.version) == (True, 2)
    page = act(tenant.client(), BUDS, "put_back", rows[0], confirmed=False)
    assert notices(page) == ["1 bud is in use again."]
    rows[0].refresh_from_db()
    assert not rows[0].is_archived
    assert not OutsideWrite.objects.exists()


def test_buds_and_providers_of_others_stay(tenant: Tenant) -> None:
    """SEC-580: of another workspace, and a person's own bud."""
    other = make_tenant("other", CANARY)
    [foreign] = some_buds(other, 1, CANARY)
    own = Bud.objects.create(
        workspace=tenant.workspace,
        slug="own",
        name="Own",
        visibility="owner",
        owner=tenant.member,
    )
    provider = a_provider(other, CANARY)
    client = tenant.client()
    pages = [
        act(client, BUDS, "archive", foreign, own),
        act(client, PROVIDERS, "switch_off", provider),
        act(client, PROVIDERS, "switch_off", provider, confirmed=False),
        act(client, PROVIDERS, "test_connections", provider),
    ]
    assert not any(CANARY in page.content.decode() for page in pages)
    for row in (foreign, own, provider):
        row.refresh_from_db()
    assert (foreign.is_archived, own.is_archived, provider.is_active) == (False, False, True)


def test_providers_are_switched_off_and_on(tenant: Tenant) -> None:
    """REL-1190, REL-1191: what is off already is told, and keeps nothing back."""
    rows = [a_provider(tenant, "one"), a_provider(tenant, "two")]
    client = tenant.client()
    text = act(client, PROVIDERS, "switch_off", *rows, confirmed=False).content.decode()
    assert "Switch off 2 providers?" in text
    assert "stop answering" in text
    assert notices(act(client, PROVIDERS, "switch_off", rows[0])) == ["1 provider switched off."]
    assert notices(act(client, PROVIDERS, "switch_off", *rows)) == [
        "1 provider switched off.",
        "one: It is switched off already.",
    ]
    page = act(client, PROVIDERS, "switch_on", *rows, confirmed=False)
    assert notices(page) == ["2 providers switched on."]


def test_the_service_asks_who_switches_a_provider(tenant: Tenant) -> None:
    """SEC-580: a member may not, nor an administrator of another workspace."""
    provider = a_provider(tenant, "one")
    for actor in (tenant.actor("member"), make_tenant("other").actor("owner")):
        with pytest.raises(PermissionDenied):
            switch_provider(provider=provider, is_active=False, actor=actor)
    with pytest.raises(Conflict):
        switch_provider(provider=provider, is_active=True, actor=tenant.actor())


def test_connections_of_providers_are_tested(chat: Chat) -> None:
    """REL-1190, REL-1192: each says how it answered, or why it did not; of a few at once."""
    chat.model.models = {"data": [{"id": "big"}, {"id": "small"}]}
    tenant = chat.tenant
    good = ModelProvider.objects.for_workspace(tenant.workspace).get()
    off = a_provider(tenant, "gone", chat.model.base_url.replace("/v1", "/nowhere"))
    client = tenant.client()
    page = act(client, PROVIDERS, "test_connections", good, off, confirmed=False)
    first, second = notices(page)
    assert first.startswith(f"{good.name} answered in ")
    assert first.endswith(" ms and lists 2 models.")
    assert second.startswith("gone: ")
    assert "sk-scripted-canary" not in page.content.decode()
    many = [a_provider(tenant, f"p{number}") for number in range(11)]
    [text] = notices(act(client, PROVIDERS, "test_connections", *many))
    assert text == "You chose 11 rows. Choose at most 10 at once. Nothing was changed."


@pytest.mark.parametrize("url", [BUDS, PROVIDERS])
def test_lists_with_actions_take_as_many_statements_for_many_rows(tenant: Tenant, url: str) -> None:
    """REL-1190."""
    client, counts = tenant.client(), []
    for number in range(3):
        some_buds(tenant, 2, f"round{number}")
        a_provider(tenant, f"round {number}")
        a_provider(tenant, f"again {number}")
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        counts.append(len(captured))
    assert counts[1] == counts[2]
