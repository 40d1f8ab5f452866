"""A bud that names tools: refused if they do not exist, and said so if they are gone later."""

from __future__ import annotations

from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from chat.models import Bud
from chat.services.buds import update_bud
from mcp_servers.models import McpTool
from tests.chat.conftest import Chat
from workspaces.errors import InvalidInput


def save(chat: Chat, **config: Any) -> Bud:
    """Have an administrator save the bud with this configuration."""
    bud = Bud.objects.for_workspace(chat.tenant.workspace).fetch(chat.bud.pk)
    values = {"mcp_config": {"servers": [str(chat.row.pk)], **config}}
    return update_bud(bud=bud, actor=chat.tenant.actor(), values=values)


def choose(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def lose(chat: Chat, name: str) -> None:
    """The server does not offer this tool any more."""
    rows = McpTool.objects.for_workspace(chat.tenant.workspace).filter(name=name)
    rows.update(removed_at=timezone.now())


@pytest.mark.parametrize(
    "config",
    [
        {"available_tools": ["{server}.invented"]},
        {"available_tools": ["{server}.echo", "no server at all"]},
        {"available_tools": ["{stranger}.echo"]},
        {"available_tools": ["{stranger}"]},
        {"disabled_tools": ["{server}.invented"]},
        {"tool_choice": "invented"},
        {"tool_choice": "counting.invented"},
        {"servers": ["{stranger}"]},
    ],
)
def test_a_name_that_nothing_has_is_refused(chat: Chat, config: dict[str, Any]) -> None:
    """SEC-274: wherever the configuration names a tool or a server, and the error says which."""
    known = {"server": str(chat.row.pk), "stranger": str(uuid4())}
    given = {
        key: choose(value) if isinstance(value, str) else [one.format(**known) for one in value]
        for key, value in config.items()
    }
    with pytest.raises(InvalidInput) as caught:
        save(chat, **given)
    [*faults] = caught.value.fields["mcp_config"]
    assert faults
    if "servers" not in config:
        assert "invented" in faults[0] or "no server" in faults[0] or known["stranger"] in faults[0]


@pytest.mark.parametrize("choice", ["echo", "counting.echo", "counting__echo", "create_artifact"])
def test_what_exists_is_saved(chat: Chat, choice: str) -> None:
    """SEC-274: in each form that people know a tool by."""
    tool = McpTool.objects.for_workspace(chat.tenant.workspace).get(name="echo")
    names = [f"{chat.row.pk}.echo", str(tool.pk)]
    bud = save(chat, available_tools=names, disabled_tools=names, tool_choice=choose(choice))
    assert bud.mcp.available_tools == names


def test_a_bud_that_lost_a_tool_says_so(chat: Chat) -> None:
    """SEC-274: in the chat and on its page; it can still be renamed, and saved without that tool."""
    bud = save(chat, available_tools=[f"{chat.row.pk}.echo", f"{chat.row.pk}.plain"])
    lose(chat, "echo")
    chat.model.say("hello")
    text = "This bud's tool “counting.echo” no longer exists."
    assert text in chat.ask().notice
    client = chat.tenant.client()
    page = client.get(f"/api/buds/{bud.pk}/", headers={"X-Workspace": chat.tenant.workspace.slug})
    assert page.json()["problems"] == [text]
    form = client.get(f"/admin/chat/bud/{bud.pk}/change/", follow=True).content.decode()
    assert text in unescape(form)
    update_bud(bud=bud, actor=chat.tenant.actor(), values={"name": "Renamed"})
    with pytest.raises(InvalidInput):
        update_bud(bud=bud, actor=chat.tenant.actor(), values={"mcp_config": bud.mcp_config})
    assert save(chat, available_tools=[f"{chat.row.pk}.plain"]).mcp.available_tools
