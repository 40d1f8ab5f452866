"""What administrators see over REST of what members share and how they rate answers."""

from __future__ import annotations

import pytest
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.models import AuditEntry
from chat.models import SharedChat, Turn
from mcp_servers.models import McpTool, ToolPermission
from tests.chat.providers.usage import ask
from tests.chat.services.shared_chats import make_bud, make_conversation, share
from tests.factories import CANARY, Tenant, TwoTenants
from tests.mcp_servers.factories import http_server, stored_tool
from tests.row_actions import act, notices

pytestmark = pytest.mark.django_db
LIST = "/admin/mcp_servers/toolpermission/"


def test_administrators_see_and_stop_what_is_shared(two_workspaces: TwoTenants) -> None:
    """REL-1064, SEC-477: in their workspace, and not what it says."""
    for tenant in (two_workspaces.a, two_workspaces.b):
        share(tenant, make_conversation(tenant, make_bud(tenant)))
    tenant = two_workspaces.a
    admin = tenant.client("admin")
    answer = admin.get("/api/member-shares/?audience=workspace")
    [row] = answer.json()["results"]
    assert (row["owner"], row["people"]) == (tenant.member.email, 0)
    assert CANARY not in answer.content.decode()
    path = f"/api/member-shares/{row['id']}/"
    assert tenant.client("member").delete(path).status_code == 403
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    assert not SharedChat.objects.for_workspace(tenant.workspace).exists()


def test_administrators_read_ratings(two_workspaces: TwoTenants) -> None:
    """REL-1064: of answers in their workspace, for those who manage buds."""
    for tenant in (two_workspaces.a, two_workspaces.b):
        ask(tenant, make_bud(tenant), tenant.member, "member")
    tenant = two_workspaces.a
    admin = tenant.client("admin")
    assert not admin.get("/api/ratings/").json()["results"]
    Turn.objects.across_workspaces().update(rating="bad", rating_reason="It is wrong.")
    [row] = admin.get("/api/ratings/?rating=bad").json()["results"]
    assert (row["rating_reason"], row["asked_by"]) == ("It is wrong.", tenant.member.email)
    assert admin.get("/api/ratings/?rating=awful").status_code == 400
    assert tenant.client("member").get("/api/ratings/").status_code == 403


def test_administrators_see_and_revoke_what_members_always_allow(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-782: in their workspace alone, on a page and over REST. It is entered whose it was, and by whom."""
    tenant = two_workspaces.a
    tools = [(one, tool_in(one)) for one in (tenant, two_workspaces.b)]
    given = [
        ToolPermission.objects.create(
            workspace=one.workspace,
            user=one.member,
            tool=tool,
            definition_hash=tool.definition_hash,
            asks_always=asks_always,
            conversation_id=here,
        )
        for one, tool in tools
        for asks_always, here in ((False, None), (True, uuid7()), (False, uuid7()))
    ]
    admin = tenant.client("admin")
    rows = admin.get("/api/member-tool-permissions/").json()["results"]
    assert {row["id"] for row in rows} == {str(given[0].pk), str(given[2].pk)}
    assert {row["member"] for row in rows} == {tenant.member.email}
    page = admin.get(LIST).content.decode()
    for text in (tenant.member.email, "all their chats", "one chat", "its tool"):
        assert text in page
    for asked, status in ((given[1], 404), (given[3], 404), (given[0], 204)):
        path = f"/api/member-tool-permissions/{asked.pk}/"
        assert tenant.client("member").delete(path).status_code == 403
        assert admin.delete(path).status_code == status
    for row in (given[1], given[3]):
        act(admin, LIST, "revoke", row)
    assert ToolPermission.objects.for_workspace(two_workspaces.b.workspace).count() == 3
    assert (
        "Revoke 1 permission?"
        in act(admin, LIST, "revoke", given[2], confirmed=False).content.decode()
    )
    assert notices(act(admin, LIST, "revoke", given[2])) == ["1 permission revoked."]
    left = ToolPermission.objects.for_workspace(tenant.workspace)
    assert [row.pk for row in left] == [given[1].pk]
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    entries = entries.filter(action=Action.PERMISSION_FORGOTTEN.value)
    assert [one.actor_label for one in entries] == [tenant.admin.email] * 2
    assert {one.details["given_by"] for one in entries} == {tenant.member.email}
    assert tenant.client("member").get(LIST).status_code in {302, 403}


def test_a_list_without_permissions_says_where_they_come_from(tenant: Tenant) -> None:
    """REL-1824: nobody can add one there."""
    page = tenant.client("admin").get(LIST).content.decode()
    assert "a member can choose “Always”" in page


def tool_in(tenant: Tenant) -> McpTool:
    """A tool of the workspace."""
    return stored_tool(http_server(tenant, "https://mcp.example.org/mcp"), "its tool")
