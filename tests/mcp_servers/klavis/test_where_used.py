"""Where the server of a hosted service is used: said at the installation, kept until it is there."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from chat.models import Bud
from chat.services.buds import create_bud, update_bud
from mcp_servers.klavis import installing
from mcp_servers.klavis.models import InstanceState, KlavisAccount, KlavisInstance
from mcp_servers.models import McpServer
from mcp_servers.registry.bud_choices import EVERYWHERE, WhereUsed
from tests.factories import Tenant, TwoTenants
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.klavis.conftest import poll_now
from workspaces.errors import InvalidInput
from workspaces.models import Membership

INSTALL = "/w/acme/catalogue/klavis/gmail/install/"


def a_bud(tenant: Tenant, slug: str, **values: Any) -> Bud:
    given = {"slug": slug, "name": slug.title(), "takes_all_tools": False, **values}
    return create_bud(workspace_id=tenant.workspace.pk, actor=tenant.actor("admin"), values=given)


def servers_of(bud: Bud) -> list[Any]:
    bud.refresh_from_db()
    return list(bud.mcp.servers)


def sign_in(tenant: Tenant, provider: FakeKlavis) -> KlavisInstance:
    """Somebody signs in, and the platform notices."""
    provider.only().is_signed_in = True
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    rows.update(next_poll_at=timezone.now())
    return poll_now(rows.get())


def test_chosen_buds_get_it_once_somebody_has_signed_in(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1222: on the page of the catalogue; a bud that was archived meanwhile is passed over."""
    chosen, gone, other = (a_bud(tenant, slug) for slug in ("chosen", "gone", "other"))
    client = tenant.client("admin")
    asked = {"for": "workspace", "use": "chosen_buds", "bud_ids": [str(chosen.pk), str(gone.pk)]}
    assert client.post(INSTALL, {**asked, "bud_ids": []}).status_code == 422
    assert not KlavisInstance.objects.for_workspace(tenant.workspace).exists()
    assert client.post(INSTALL, asked).status_code == 302
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    update_bud(bud=gone, actor=tenant.actor("admin"), values={"is_archived": True})
    ready = sign_in(tenant, provider)
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert (ready.state, ready.reason, server.is_used_everywhere) == ("ready", "", False)
    assert servers_of(chosen) == [server.pk]
    assert servers_of(other) == servers_of(gone) == []


def test_it_may_wait_until_somebody_adds_it(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1222: without a word about it, every bud that takes all tools uses it, as it always was."""
    client = tenant.client("admin")
    client.post(INSTALL, {"for": "workspace", "use": "on_request"})
    sign_in(tenant, provider)
    assert not McpServer.objects.for_workspace(tenant.workspace).get().is_used_everywhere
    installing.uninstall(
        instance=KlavisInstance.objects.for_workspace(tenant.workspace).get(),
        actor=tenant.actor("admin"),
    )
    client.post(INSTALL, {"for": "workspace"})
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)
    assert rows.get().is_used_everywhere


def test_an_installation_that_failed_later_takes_a_new_choice(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1222: its server is there from before; installing it again without a word changes nothing of that."""
    bud = a_bud(tenant, "chosen")
    rows = KlavisInstance.objects.for_workspace(tenant.workspace)

    def install(where: WhereUsed) -> McpServer:
        installing.install(
            workspace=tenant.workspace,
            server_name="Gmail",
            actor=tenant.actor("admin"),
            for_workspace=True,
            where=where,
        )
        return McpServer.objects.for_workspace(tenant.workspace).get()

    tenant.client("admin").post(INSTALL, {"for": "workspace"})
    sign_in(tenant, provider)
    for where in (WhereUsed(is_used_everywhere=False, bud_ids=(bud.pk,)), EVERYWHERE):
        rows.update(state=InstanceState.FAILED)
        server = install(where)
        assert (server.is_used_everywhere, servers_of(bud)) == (False, [server.pk])


def test_a_bud_that_takes_no_server_now_stops_nothing(
    tenant: Tenant, account: KlavisAccount, provider: FakeKlavis
) -> None:
    """REL-1222: the person who installed it may not change buds any more; the card says that no bud uses it."""
    bud = a_bud(tenant, "chosen")
    where = WhereUsed(is_used_everywhere=False, bud_ids=(bud.pk,))
    installing.install(
        workspace=tenant.workspace,
        server_name="Gmail",
        actor=tenant.actor("admin"),
        for_workspace=True,
        where=where,
    )
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.admin).update(
        role="member"
    )
    ready = sign_in(tenant, provider)
    assert ready.state == "ready"
    assert "do not use it" in ready.reason
    assert servers_of(bud) == []


def test_several_services_behind_one_server_ask_it_too(
    tenant: Tenant, account: KlavisAccount
) -> None:
    """REL-1222: on the page, and over REST."""
    bud = a_bud(tenant, "chosen")
    client = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    assert "Where it is used" in client.get("/w/acme/servers/klavis/").content.decode()
    asked = {"services": ["Gmail", "Slack"], "is_used_everywhere": False, "bud_ids": [bud.pk]}
    made = client.post("/api/hosted-servers/", asked, content_type="application/json")
    assert made.status_code == 201, made.content
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert not server.is_used_everywhere
    assert servers_of(bud) == [server.pk]


@pytest.mark.parametrize("services", [(), ("Gmail",)])
def test_buds_of_others_are_refused(two_workspaces: TwoTenants, services: tuple[str, ...]) -> None:
    """SEC-596: before anything is made at the provider."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    bud = a_bud(theirs, "theirs")
    with pytest.raises(InvalidInput) as refused:
        installing.install(
            workspace=ours.workspace,
            server_name="Gmail",
            services=services,
            actor=ours.actor("admin"),
            for_workspace=True,
            where=WhereUsed(is_used_everywhere=False, bud_ids=(bud.pk,)),
        )
    assert list(refused.value.fields) == ["bud_ids"]
