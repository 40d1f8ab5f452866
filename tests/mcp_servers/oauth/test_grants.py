"""Whose a grant is, what it is bound to, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from audit.actions import Outcome
from chat.models import Bud, Conversation
from chat.tools.toolset import resolve_toolset
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ToolNotFound
from mcp_servers.gate import call_tool
from mcp_servers.models import (
    McpServer,
    McpTool,
    OAuthAttempt,
    OAuthClient,
    OAuthGrant,
    ServerStatus,
    ToolSighting,
)
from mcp_servers.oauth.grants import needs_sign_in, principal_of, usable_grant
from mcp_servers.oauth.services import revoke_grant
from mcp_servers.registry import services
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant
from tests.fakes.authorization import Issuer
from tests.fakes.mcp_server import RawServer
from tests.fakes.protected_server import ProtectedServer
from tests.mcp_servers.factories import a_request, actor_of, http_server, tool_of
from tests.mcp_servers.oauth.conftest import SignIn
from workspaces.actors import Source
from workspaces.errors import PermissionDenied
from workspaces.models import Membership
from workspaces.people.services import remove_member


def freely(server: McpServer, name: str = "whoami") -> McpTool:
    """A tool that needs nobody's approval."""
    tool = tool_of(server, name)
    tool.approval_override = "auto"
    tool.save()
    return tool


def test_each_persons_calls_are_their_own(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-53: two people, two accounts, two connections; a third is asked to sign in, and nothing is sent."""
    sign_in(server, "member", "ada@example.com")
    sign_in(server, "admin", "grace@example.com")
    tool = freely(server)
    for role in ("member", "admin"):
        actor = actor_of(tenant, role)
        outcome = async_to_sync(call_tool)(a_request(tenant, tool, actor=actor))
        assert outcome.outcome is Outcome.OK
    third = async_to_sync(call_tool)(a_request(tenant, tool, actor=actor_of(tenant, "owner")))
    assert third.details["kind"] == "auth_required"
    assert [account for _, account, _ in protected.calls] == [
        "ada@example.com",
        "grace@example.com",
    ]
    keys = {connection_spec(server, user_id=tenant.people[r].pk).key for r in ("member", "admin")}
    assert len(keys) == 2


def test_work_with_nobody_present_uses_no_persons_grant(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-53: a task, even one for the person who signed in, is refused; the workspace's account serves it."""
    sign_in(server, "member")
    tool = freely(server)
    actor = actor_of(tenant, "member", Source.TASK)
    outcome = async_to_sync(call_tool)(a_request(tenant, tool, actor=actor))
    assert outcome.details["kind"] == "auth_required"
    assert protected.calls == []
    shared = http_server(
        tenant, protected.url, name="shared", auth_type="oauth", account_use="workspace"
    )
    sign_in(shared, "admin", "team@example.com")
    outcome = async_to_sync(call_tool)(a_request(tenant, freely(shared), actor=actor))
    assert outcome.outcome is Outcome.OK
    assert protected.called_by("whoami") == ["team@example.com"]


def test_each_is_offered_what_their_own_account_is_shown(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-10: lists that differ by token are never shared between two who signed in."""
    protected.add_tool("for_ada", "ada@example.com")
    protected.add_tool("for_grace", "grace@example.com")
    sign_in(server, "member", "ada@example.com")
    sign_in(server, "admin", "grace@example.com")
    for tool in McpTool.objects.for_workspace(tenant.workspace):
        services.accept_definition(tool=tool, actor=tenant.actor())
    bud = Bud.objects.create(
        workspace=tenant.workspace,
        slug="bud",
        name="Bud",
        mcp_config={"servers": [str(server.pk)]},
    )
    offered = {}
    for role in ("member", "admin"):
        conversation = Conversation.objects.create(
            workspace=tenant.workspace, owner=tenant.people[role], bud=bud
        )
        tools = resolve_toolset(bud, conversation).tools
        offered[role] = {tool.tool_name for tool in tools if tool.server_id == server.pk}
    assert offered["member"] - offered["admin"] == {"for_ada"}
    assert offered["admin"] - offered["member"] == {"for_grace"}
    with pytest.raises(ToolNotFound):
        async_to_sync(call_tool)(a_request(tenant, freely(server, "for_grace")))


def test_disconnecting_ends_everything_at_once(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-54: the issuer is told, tokens are gone, the connection closes, and the next call is refused."""
    grant = sign_in(server).grant
    tool = freely(server)
    assert async_to_sync(call_tool)(a_request(tenant, tool)).outcome is Outcome.OK
    revoke_grant(grant=grant, actor=actor_of(tenant, "member"))
    assert not OAuthGrant.objects.across_workspaces().exists()
    assert not ToolSighting.objects.across_workspaces().exists()
    runtime.run_sync(settled(), 60)
    assert pool.granted() == []
    assert len(protected.issuer.accounts.revoked) >= 1
    outcome = async_to_sync(call_tool)(a_request(tenant, tool))
    assert outcome.details["kind"] == "auth_required"
    assert len(protected.calls) == 1


async def settled() -> None:
    """Wait for all that was begun on the connections' loop and ends by itself."""
    names = ("_tell_issuer", "drop")
    while pending := [
        task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") in names
    ]:
        await asyncio.wait(pending)


def test_only_its_owner_and_administrators_disconnect_an_account(
    tenant: Tenant, server: McpServer, sign_in: SignIn
) -> None:
    """Another member may not; an administrator may."""
    grant = sign_in(server).grant
    with pytest.raises(PermissionDenied):
        revoke_grant(grant=grant, actor=actor_of(tenant, "auditor"))
    revoke_grant(grant=grant, actor=actor_of(tenant, "admin"))
    assert not OAuthGrant.objects.across_workspaces().exists()


def test_who_leaves_takes_their_accounts_along(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-54: removing a member revokes and deletes what they connected, and nobody else's."""
    sign_in(server, "member")
    sign_in(server, "admin", "grace@example.com")
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=actor_of(tenant, "admin", Source.WEB))
    runtime.run_sync(settled(), 60)
    assert OAuthGrant.objects.across_workspaces().get().user == tenant.admin
    assert protected.issuer.accounts.revoked


def test_a_deleted_server_leaves_no_grant(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-54: with the server go its grants, clients and sign-ins under way; the issuer is told."""
    sign_in(server)
    services.delete_server(server=server, actor=tenant.actor())
    runtime.run_sync(settled(), 60)
    for model in (OAuthGrant, OAuthClient, OAuthAttempt):
        assert not model.objects.across_workspaces().exists()
    assert protected.issuer.accounts.revoked


@pytest.mark.parametrize(
    "change",
    [
        {"url": "ELSEWHERE"},
        {"auth_type": "none"},
        {"account_use": "workspace"},
        {"auth": {"client_id": "another"}},
    ],
)
def test_a_server_that_is_another_now_keeps_no_grant(
    tenant: Tenant, server: McpServer, sign_in: SignIn, change: dict[str, Any]
) -> None:
    """SEC-99: a changed address, kind of sign-in or client drops what was granted; the new host hears no token."""
    sign_in(server)
    canary = RawServer()
    try:
        fields = {**change, "url": canary.url} if "url" in change else change
        changed = services.update_server(
            server=server, draft=ServerDraft(**fields), actor=tenant.actor()
        )
        assert not OAuthGrant.objects.across_workspaces().exists()
        services.refresh_tools(server=changed, actor=tenant.actor())
        assert all("authorization" not in headers for _, headers, _ in canary.requests)
    finally:
        canary.stop()


def test_saving_settings_that_change_nothing_keeps_the_grant(
    tenant: Tenant, server: McpServer, sign_in: SignIn
) -> None:
    """A new name is no new server."""
    sign_in(server)
    services.update_server(server=server, draft=ServerDraft(name="post"), actor=tenant.actor())
    assert OAuthGrant.objects.across_workspaces().exists()


def test_a_grant_is_for_the_address_it_was_given_at(
    tenant: Tenant, server: McpServer, sign_in: SignIn
) -> None:
    """SEC-47: however the row came to point elsewhere, the old grant does not serve there."""
    sign_in(server)
    McpServer.objects.across_workspaces().update(url="https://elsewhere.example.org/mcp")
    server.refresh_from_db()
    assert usable_grant(server, tenant.member.pk) is None
    assert needs_sign_in(server, tenant.member.pk)


def test_an_issuer_that_vanishes_is_asked_for_nothing_else(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-47: a server that names another authorization server gets no token of the first sent there."""
    sign_in(server)
    other = Issuer()
    try:
        protected.metadata_overrides["authorization_servers"] = [other.url]
        protected.issuer.accounts.expire_access_tokens()
        tool = freely(server)
        async_to_sync(call_tool)(a_request(tenant, tool))
        assert other.requests == []
        assert len(protected.issuer.token_requests("refresh_token")) == 1
    finally:
        other.stop()


def test_the_health_of_a_server_needs_nobodys_account(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-53: checks knock without a token: amber until somebody has signed in, green from then on."""
    services.check_server(server=server)
    server.refresh_from_db()
    assert server.state.status == ServerStatus.AUTH_REQUIRED
    sign_in(server)
    before = len(protected.listed)
    services.check_server(server=server)
    server.refresh_from_db()
    assert server.state.status == ServerStatus.CONNECTED
    assert len(protected.listed) == before


def test_no_token_is_told_anywhere(
    tenant: Tenant,
    server: McpServer,
    protected: ProtectedServer,
    sign_in: SignIn,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SEC-51, SEC-98: tokens go into one header of requests to their server, and into no log, URL or other host's hands."""
    caplog.set_level(logging.DEBUG)
    grant = sign_in(server).grant
    assert grant.tokens is not None
    secrets = list(grant.tokens.reveal_json("a test").values())
    async_to_sync(call_tool)(a_request(tenant, freely(server)))
    assert not [secret for secret in secrets if secret in caplog.text]
    for request in protected.requests:
        assert not [secret for secret in secrets if secret in request[1]]
    assert principal_of(server, tenant.member.pk) == f"user:{tenant.member.pk}"


def test_a_client_signs_in_without_a_person(
    tenant: Tenant, protected: ProtectedServer, issuer: Issuer
) -> None:
    """Client credentials: the platform itself is let in, with nobody there, and renews by asking anew."""
    issuer.add_client("robot", "robot-secret")
    server = http_server(
        tenant,
        protected.url,
        name="robot",
        auth_type="oauth_client",
        auth={"client_id": "robot", "client_secret": "robot-secret"},
    )
    report = services.test_connection(server=server, actor=tenant.actor())
    assert report.ok, report
    actor = actor_of(tenant, "member", Source.TASK)
    outcome = async_to_sync(call_tool)(a_request(tenant, freely(server), actor=actor))
    assert outcome.outcome is Outcome.OK
    grant = OAuthGrant.objects.across_workspaces().get()
    assert grant.user is None
    issuer.accounts.expire_access_tokens()
    outcome = async_to_sync(call_tool)(a_request(tenant, freely(server), actor=actor))
    assert outcome.outcome is Outcome.OK
    assert len(issuer.token_requests("client_credentials")) == 2


def test_an_end_in_another_process_closes_connections_here(
    tenant: Tenant, server: McpServer, sign_in: SignIn
) -> None:
    """SEC-54: a grant that is gone from the database takes its open connections along within seconds."""
    sign_in(server)
    assert async_to_sync(call_tool)(a_request(tenant, freely(server))).outcome is Outcome.OK
    assert pool.granted()
    OAuthGrant.objects.across_workspaces().all().delete()

    async def closed() -> None:
        while pool.granted():
            await asyncio.sleep(0.05)

    runtime.run_sync(closed(), 60)


def test_an_account_that_is_shown_nothing_is_offered_nothing(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-10: an empty list of one's own is a list too."""
    for name in ("whoami", "send"):
        protected.only_for[name] = {"ada@example.com"}
    sign_in(server, "admin", "ada@example.com")
    tool = freely(server)
    sign_in(server, "member", "grace@example.com")
    with pytest.raises(ToolNotFound):
        async_to_sync(call_tool)(a_request(tenant, tool))
    assert protected.calls == []


def test_a_members_first_look_accepts_nothing_for_the_others(
    tenant: Tenant, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-58: what a member's own account is shown rests until somebody who manages servers accepts it."""
    server = http_server(tenant, protected.url, name="strict", auth_type="oauth")
    sign_in(server, "member")
    assert all(tool.is_quarantined for tool in McpTool.objects.for_workspace(tenant.workspace))
    sign_in(server, "admin")
    assert not tool_of(server, "whoami").is_quarantined


def test_a_lost_key_keeps_nobody_from_leaving(
    tenant: Tenant, server: McpServer, sign_in: SignIn
) -> None:
    """What cannot be decrypted any more can still be disconnected, and its server deleted."""
    grant = sign_in(server).grant
    lost = str(grant.tokens.sealed).replace(".", ".lost-", 1) if grant.tokens else ""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE mcp_servers_oauthgrant SET tokens = %s", [lost])
    services.update_server(server=server, draft=ServerDraft(name="post"), actor=tenant.actor())
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    remove_member(membership=membership, actor=actor_of(tenant, "admin", Source.WEB))
    assert not OAuthGrant.objects.across_workspaces().exists()


def test_another_account_is_looked_at_anew(
    tenant: Tenant, server: McpServer, protected: ProtectedServer, sign_in: SignIn
) -> None:
    """SEC-10: signing in as somebody else leaves nothing of what the former account was shown."""
    protected.add_tool("for_ada", "ada@example.com")
    sign_in(server, "member", "ada@example.com")
    tool = freely(server, "for_ada")
    sign_in(server, "member", "grace@example.com")
    assert not ToolSighting.objects.across_workspaces().filter(tool=tool).exists()
