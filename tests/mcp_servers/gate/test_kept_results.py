"""Results that are kept for identical calls."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache

from audit.actions import Action
from audit.models import AuditEntry
from mcp_servers.client.errors import CallRefused
from mcp_servers.gate import call_tool
from mcp_servers.models import CallCount, McpServer, McpTool
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import a_request, actor_of, http_server, looked_at, tool_of
from workspaces.errors import PermissionDenied
from workspaces.models import Membership


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """Nothing is left of other tests."""
    cache.clear()


def set_kept(tool: McpTool, seconds: int | None) -> None:
    McpTool.objects.for_workspace(tool.workspace_id).filter(pk=tool.pk).update(
        cache_seconds=seconds
    )


@pytest.fixture
def echo(trusted: McpServer) -> McpTool:
    """A tool that just reads, of a trusted server, whose results are kept for a minute."""
    tool = tool_of(trusted, "echo")
    set_kept(tool, 60)
    return tool


async def finished(tenant: Tenant) -> list[AuditEntry]:
    entries = AuditEntry.objects.for_workspace(tenant.workspace).order_by("pk")
    return [entry async for entry in entries.filter(action=Action.TOOL_CALL_FINISHED.value)]


async def test_an_identical_call_is_answered_from_the_kept_result(
    tenant: Tenant, echo: McpTool, counting: CountingServer
) -> None:
    """The server is asked once; the log has both calls whole, and says which was answered from memory."""
    first = await call_tool(a_request(tenant, echo, {"text": "x"}))
    second = await call_tool(a_request(tenant, echo, {"text": "x"}))
    assert counting.names() == ["echo"]
    assert (first.cached_at, second.cached_at is not None) == (None, True)
    assert second.as_model_text() == first.as_model_text() == "x"
    entries = await finished(tenant)
    assert ["cached_at" in entry.details for entry in entries] == [False, True]
    requested = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action=Action.TOOL_CALL_REQUESTED.value
    )
    assert await requested.acount() == 2


async def test_a_kept_result_is_not_counted(
    tenant: Tenant, echo: McpTool, counting: CountingServer
) -> None:
    """SEC-79: the day's calls are those that the server was sent."""
    server = McpServer.objects.for_workspace(tenant.workspace).filter(pk=echo.server_id)
    await server.aupdate(connection_config={**echo.server.connection_config, "calls_per_day": 1})
    first = await call_tool(a_request(tenant, echo, {"text": "x"}))
    second = await call_tool(a_request(tenant, echo, {"text": "x"}))
    assert (first.cached_at is None, second.cached_at is None) == (True, False)
    with pytest.raises(CallRefused):
        await call_tool(a_request(tenant, echo, {"text": "y"}))
    count = await CallCount.objects.for_workspace(tenant.workspace).aget()
    assert (count.used, counting.names()) == (1, ["echo"])


async def test_other_arguments_are_another_call(
    tenant: Tenant, echo: McpTool, counting: CountingServer
) -> None:
    """Identical means to the byte."""
    await call_tool(a_request(tenant, echo, {"text": "x"}))
    await call_tool(a_request(tenant, echo, {"text": "y"}))
    assert len(counting.calls) == 2


async def test_nothing_is_kept_unless_it_was_switched_on(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """Opt-in per tool."""
    tool = await sync_to_async(tool_of)(trusted, "echo")
    for _ in range(2):
        await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert len(counting.calls) == 2


async def test_only_tools_that_just_read_keep_results(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-59: the word of a server that is not trusted does not count, nor does a tool that writes."""
    untrusted = await sync_to_async(looked_at)(
        tenant, await sync_to_async(http_server)(tenant, counting.url, name="untrusted")
    )
    tool = await sync_to_async(tool_of)(untrusted, "echo")
    await sync_to_async(set_kept)(tool, 60)
    tool.approval_override = "auto"
    await tool.asave()
    for _ in range(2):
        outcome = await call_tool(a_request(tenant, tool, {"text": "x"}))
        assert outcome.cached_at is None
    assert len(counting.calls) == 2


async def test_errors_are_not_kept(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """A failure may be gone a moment later."""
    tool = await sync_to_async(tool_of)(trusted, "fail")
    await sync_to_async(set_kept)(tool, 60)
    for _ in range(2):
        assert (await call_tool(a_request(tenant, tool, {"text": "x"}))).is_error
    assert len(counting.calls) == 2


async def test_a_change_of_settings_or_definition_makes_them_void(
    tenant: Tenant, echo: McpTool, counting: CountingServer
) -> None:
    """SEC-10: the key holds workspace, principal, settings and definition."""
    await call_tool(a_request(tenant, echo, {"text": "x"}))
    servers = McpServer.objects.for_workspace(tenant.workspace)
    await servers.filter(pk=echo.server_id).aupdate(connection_config={"call_seconds": 20.0})
    await call_tool(a_request(tenant, echo, {"text": "x"}))
    tools = McpTool.objects.for_workspace(tenant.workspace).filter(pk=echo.pk)
    await tools.aupdate(definition_hash="a" * 64, approved_hash="a" * 64)
    await call_tool(a_request(tenant, echo, {"text": "x"}))
    assert len(counting.calls) == 3


async def test_a_person_who_may_not_call_gets_no_kept_result(tenant: Tenant, echo: McpTool) -> None:
    """SEC-10: rights are asked each time; only the trip is spared."""
    await call_tool(a_request(tenant, echo, {"text": "x"}))
    members = Membership.objects.for_workspace(tenant.workspace)
    await members.filter(user=tenant.people["member"]).adelete()
    with pytest.raises(PermissionDenied, match="no longer a member"):
        await call_tool(a_request(tenant, echo, {"text": "x"}, actor=actor_of(tenant, "member")))
