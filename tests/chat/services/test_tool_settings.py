"""Single changes of what a conversation changes of its bud's tools."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from chat.models import Bud, Conversation
from chat.services.conversations import create_conversation
from chat.services.tool_settings import ToolChange, change_tools
from mcp_servers.models import McpServer, McpTool, ServerScope
from tests import factories
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import stored_tool
from workspaces.errors import DomainError, InvalidInput

pytestmark = pytest.mark.both_engines


tenant = factories.tenant


@pytest.fixture
def chat(tenant: Tenant) -> Conversation:
    bud = Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    return create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))


def server_of(tenant: Tenant, name: str, **more: Any) -> McpServer:
    return McpServer.objects.create(
        workspace=tenant.workspace, name=name, url=f"https://{name}.example.org/mcp", **more
    )


def tool_of(server: McpServer, name: str) -> McpTool:
    stored_tool(server, name)
    return McpTool.objects.for_workspace(server.workspace_id).get(server=server, name=name)


def test_one_change_leaves_the_others(tenant: Tenant, chat: Conversation) -> None:
    """REL-1345: two pages that know nothing of each other change what each of them touches, and no more."""
    notes, mail = server_of(tenant, "notes"), server_of(tenant, "mail")
    send, read = tool_of(mail, "send"), tool_of(mail, "read")
    actor = tenant.actor("member")

    def change(kind: ToolChange, **what: Any) -> None:
        # Each page has its own copy of the row, as old as the page.
        change_tools(conversation=chat, change=kind, actor=actor, **what)

    def now() -> dict[str, Any]:
        row = Conversation.objects.for_workspace(tenant.workspace).get(pk=chat.pk)
        return row.overrides.model_dump(mode="json")

    change(ToolChange.DISABLE_SERVER, server_id=notes.pk)
    for tool in (send, read, send):
        change(ToolChange.DISABLE_TOOL, tool_id=tool.pk)
    change(ToolChange.CHOOSE_TOOL, tool_choice="required")
    change(ToolChange.ADD_SERVER, server_id=mail.pk)
    assert now() == {
        "additional_servers": [str(mail.pk)],
        "disabled_servers": [str(notes.pk)],
        "disabled_tools": [f"{mail.pk}.read", f"{mail.pk}.send"],
        "tool_choice": "required",
    }
    change(ToolChange.ENABLE_TOOL, tool_id=send.pk)
    change(ToolChange.REMOVE_SERVER, server_id=mail.pk)
    change(ToolChange.ENABLE_SERVER, server_id=mail.pk)
    change(ToolChange.CHOOSE_TOOL)
    # Whoever adds a server that was switched off before wants to use it.
    change(ToolChange.ADD_SERVER, server_id=notes.pk)
    assert now() == {
        "additional_servers": [str(notes.pk)],
        "disabled_servers": [],
        "disabled_tools": [f"{mail.pk}.read"],
        "tool_choice": None,
    }


def test_a_tool_named_by_its_id_is_switched_on_again(tenant: Tenant, chat: Conversation) -> None:
    """REL-1345: whichever way a program has named it."""
    tool = tool_of(server_of(tenant, "mail"), "send")
    chat.mcp_config_overrides = {"disabled_tools": [str(tool.pk)]}
    chat.save()
    row = change_tools(
        conversation=chat,
        change=ToolChange.ENABLE_TOOL,
        tool_id=tool.pk,
        actor=tenant.actor("member"),
    )
    assert row.overrides.disabled_tools == []


def test_what_is_not_here_is_refused(tenant: Tenant, chat: Conversation) -> None:
    """SEC-635: a server or tool of somebody else, or of another workspace, and a choice that is none."""
    theirs = server_of(tenant, "theirs", scope=ServerScope.PERSONAL, owner=tenant.admin)
    foreign = server_of(make_tenant("other"), "foreign")
    actor = tenant.actor("member")
    refused: list[tuple[ToolChange, dict[str, Any], str]] = [
        (ToolChange.ADD_SERVER, {"server_id": foreign.pk}, "mcp_config_overrides"),
        (ToolChange.ADD_SERVER, {"server_id": theirs.pk}, "mcp_config_overrides"),
        (ToolChange.DISABLE_SERVER, {"server_id": uuid4()}, "mcp_config_overrides"),
        (ToolChange.DISABLE_SERVER, {}, "server_id"),
        (ToolChange.DISABLE_TOOL, {"tool_id": tool_of(foreign, "a").pk}, "tool_id"),
        (ToolChange.DISABLE_TOOL, {"tool_id": tool_of(theirs, "b").pk}, "tool_id"),
        (ToolChange.ENABLE_TOOL, {}, "tool_id"),
        (ToolChange.CHOOSE_TOOL, {"tool_choice": "sometimes"}, "mcp_config_overrides"),
        (ToolChange.CHOOSE_TOOL, {"tool_choice": {"type": "x"}}, "mcp_config_overrides"),
    ]
    for kind, what, field in refused:
        with pytest.raises(InvalidInput) as why:
            change_tools(conversation=chat, change=kind, actor=actor, **what)
        assert set(why.value.fields) == {field}, (kind, what)
    with pytest.raises(DomainError):
        change_tools(
            conversation=chat,
            change=ToolChange.CHOOSE_TOOL,
            actor=make_tenant("third").actor("member"),
        )
    chat.refresh_from_db()
    assert chat.mcp_config_overrides == {}


def test_it_answers_with_what_the_chat_uses_now(tenant: Tenant, chat: Conversation) -> None:
    """REL-1345, SEC-635: over REST; nobody changes the chat of somebody else."""
    server = server_of(tenant, "mail")
    headers = {"X-Workspace": tenant.workspace.slug}
    path = f"/api/conversations/{chat.pk}/tools/"

    def send(body: dict[str, Any], who: str = "member") -> Any:
        return tenant.client(who).post(path, body, content_type="application/json", headers=headers)

    answer = send({"change": "add_server", "server_id": str(server.pk)})
    assert answer.status_code == 200, answer.content
    assert answer.json()["overrides"]["additional_servers"] == [str(server.pk)]
    assert [one["name"] for one in answer.json()["servers"]] == ["mail"]
    choice = {"type": "function", "function": {"name": "mail.send"}}
    chosen = send({"change": "choose_tool", "tool_choice": choice}).json()["overrides"]
    assert chosen["tool_choice"] == choice
    assert send({"change": "choose_tool", "tool_choice": 3}).status_code == 422
    assert send({"change": "explode"}).status_code == 400
    assert send({"change": "choose_tool"}, "admin").status_code == 404
