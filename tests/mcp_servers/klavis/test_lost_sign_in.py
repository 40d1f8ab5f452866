"""A sign-in at the provider that is lost: the first call says so, asks for another, and goes on after it."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from mcp_servers.client.values import Outcome
from mcp_servers.gate import call_tool
from mcp_servers.klavis import installing
from mcp_servers.klavis.models import InstanceState, KlavisInstance
from mcp_servers.models import InputRequest, InputStatus, McpServer
from mcp_servers.registry.services import inspection
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.factories import ListeningCaller, a_request, tool_of
from tests.mcp_servers.klavis.conftest import poll_now
from tests.patience import PATIENCE


def server_of(installed: KlavisInstance) -> McpServer:
    """The server that stands for an instance, whose tool runs without asking."""
    server = McpServer.objects.for_workspace(installed.workspace_id).get()
    tool = tool_of(server, "search")
    tool.approval_override = "auto"
    tool.save()
    return server


def sign_in_again(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> None:
    """As an administrator does on the instance's page."""
    row = KlavisInstance.objects.for_workspace(tenant.workspace).select_related("workspace").get()
    assert row.state == InstanceState.WAITING_FOR_SIGN_IN
    row = installing.begin_again(instance=row, actor=tenant.actor("admin"))
    provider.only().is_signed_in = True
    assert poll_now(row).state == InstanceState.READY


async def test_the_first_call_after_a_lost_sign_in_asks_for_another_and_goes_on(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-291: the call is made once, after the sign-in; nobody needs a second look at why it failed."""
    server = await sync_to_async(server_of)(installed)
    tool = await sync_to_async(tool_of)(server, "search")
    provider.only().is_signed_in = False
    caller = ListeningCaller()
    request = a_request(tenant, tool, {"query": "x"}, can_ask=True)
    running = asyncio.ensure_future(call_tool(request, caller=caller))
    assert await asyncio.wait_for(caller.waits.get(), PATIENCE)
    [asked] = await sync_to_async(
        lambda: list(InputRequest.objects.for_workspace(tenant.workspace))
    )()
    assert (asked.kind, asked.status) == ("sign_in", InputStatus.PENDING)
    assert provider.only().secret not in str(asked.params)
    await sync_to_async(sign_in_again)(tenant, installed, provider)
    outcome = await asyncio.wait_for(running, PATIENCE)
    assert outcome.outcome is Outcome.OK, outcome.message


async def test_a_call_with_nobody_present_says_what_is_missing(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-291: in the first call and in the next, and nothing is asked of nobody."""
    server = await sync_to_async(server_of)(installed)
    tool = await sync_to_async(tool_of)(server, "search")
    provider.only().is_signed_in = False
    for _ in range(2):
        outcome = await call_tool(a_request(tenant, tool, {"query": "x"}))
        assert outcome.details["kind"] == "auth_required"
        assert "administrator to connect" in outcome.message
    assert not await sync_to_async(InputRequest.objects.for_workspace(tenant.workspace).exists)()


def test_a_look_that_finds_the_sign_in_lost_offers_another_on_both_pages(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """REL-1307: the server's page and the provider's said different things, and the latter that all is ready."""
    server = server_of(installed)
    provider.only().is_signed_in = False
    report = inspection.test_connection(server=server, actor=tenant.actor("admin"))
    assert not report.ok
    installed.refresh_from_db()
    assert installed.state == InstanceState.WAITING_FOR_SIGN_IN
    client = tenant.client("admin")
    page = client.get(f"/w/{tenant.workspace.slug}/servers/klavis/{installed.pk}/").content.decode()
    assert "Waiting for sign-in" in page
    sign_in_again(tenant, installed, provider)
    server.refresh_from_db()
    assert inspection.test_connection(server=server, actor=tenant.actor("admin")).ok


def test_the_card_and_its_address_lead_to_the_sign_in(
    tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """SEC-291: a button for whoever may sign in, on the servers' page; the same address works from a chat's card."""
    server = server_of(installed)
    from mcp_servers.models.hosting import note_lost_sign_in

    note_lost_sign_in(server)
    client = tenant.client("admin")
    page = client.get(f"/w/{tenant.workspace.slug}/servers/").content.decode()
    address = f"/w/{tenant.workspace.slug}/servers/{server.pk}/sign-in/"
    assert address in page
    assert "Connect workspace account" in page
    answer = client.get(address)
    assert answer.status_code == 302
    assert answer["Location"].endswith(f"/klavis/{installed.pk}/")
    member = tenant.client("member").get(f"/w/{tenant.workspace.slug}/servers/").content.decode()
    assert address not in member
    assert "An administrator has to connect it." in member
