"""A server that wants more than was granted: the next sign-in asks for both, and keeps what there was."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync

from mcp_servers.client.errors import InputMissing
from mcp_servers.gate import call_tool
from mcp_servers.models import McpServer, OAuthGrant
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.factories import a_request, tool_of
from tests.mcp_servers.oauth.conftest import SignIn


def test_a_step_up_asks_for_what_there_was_and_what_is_missing(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """MCP specification, "Scope Challenge Handling": 403 insufficient_scope, then the union of scopes."""
    protected.add_tool("write", scope="mail.write")
    sign_in(server)
    tool = tool_of(server, "write")
    tool.approval_override = "auto"
    tool.save()

    request = a_request(tenant, tool, can_ask=True, can_wait_elsewhere=True)
    with pytest.raises(InputMissing):
        async_to_sync(call_tool)(request)
    grant = OAuthGrant.objects.across_workspaces().get()
    assert grant.wanted_scope == "mail.write"
    sign_in(server)
    asked = protected.issuer.at("authorize")[-1].query["scope"].split()
    assert set(asked) >= {"mail.read", "mail.write"}
    grant.refresh_from_db()
    assert set(grant.scope.split()) >= {"mail.read", "mail.write"}
    assert grant.wanted_scope == ""
