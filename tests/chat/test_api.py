"""The chat's REST interface for what servers ask, offer and are allowed."""

from __future__ import annotations

from copy import copy
from typing import Any
from unittest.mock import patch

import pytest
from django.db.models.base import ModelState
from django.test import Client
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.models import AuditEntry
from chat.services import offers
from chat.services.approvals import decide
from chat.services.offers import prompts_of
from chat.tools.usable_servers import ChatSetting
from chat.values import Decision, Remember
from mcp_servers.models import McpPrompt, McpServer, McpTool, ToolPermission
from tests.chat.conftest import Chat
from tests.chat.services.questions import ADA, wait_for_question
from tests.factories import make_tenant


@pytest.fixture
def client(parked: Chat) -> Client:
    """The member's browser."""
    workspace = parked.tenant.workspace.slug
    return parked.tenant.client("member", headers={"X-Workspace": workspace})


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    return getattr(client, method)(f"/api/{path}", body, content_type="application/json")


def test_a_question_is_listed_and_answered(parked: Chat, client: Client) -> None:
    """SEC-69: pending ones can be listed; a wrong answer names its field; another person's is not found."""
    row = wait_for_question(parked)
    listed = send(client, "get", "input-requests/?status=pending").json()["results"]
    assert [one["id"] for one in listed] == [str(row.pk)]
    path = f"input-requests/{row.pk}/answer/"
    refused = send(client, "post", path, {"action": "accept", "content": {"name": ""}})
    assert 400 <= refused.status_code < 500
    assert "name" in refused.content.decode()
    other = parked.tenant.client("admin", headers={"X-Workspace": parked.tenant.workspace.slug})
    assert send(other, "post", path, {"action": "decline"}).status_code == 404
    answered = send(client, "post", path, {"action": "accept", "content": ADA})
    assert (answered.status_code, answered.json()["status"]) == (200, "accepted")
    parked.watching.turn("completed")
    assert send(client, "post", path, {"action": "decline"}).status_code == 409


def test_a_message_takes_a_resource_along(parked: Chat, client: Client) -> None:
    """Ours: the same shape as over the socket."""
    parked.model.say("Soup")
    path = f"conversations/{parked.conversation.pk}"
    [resource] = send(client, "get", f"{path}/resources/?search=menu").json()
    attachment = {"server_id": resource["server"]["id"], "uri": resource["uri"]}
    body = {"client_id": "c1", "text": "Lunch?", "attachments": [attachment]}
    sent = send(client, "post", f"{path}/messages/", body).json()
    assert sent["message"]["attachments"][0]["status"] == "queued"
    parked.watching.turn("completed")
    read = send(client, "get", f"{path}/messages/").json()["results"][0]
    assert read["attachments"][0]["status"] == "ready"
    refused = send(
        client,
        "post",
        f"{path}/messages/",
        {**body, "client_id": "c2", "attachments": [{"uri": "x"}]},
    )
    assert refused.status_code == 400


def test_resources_are_listed_before_there_is_a_conversation(parked: Chat, client: Client) -> None:
    """REL-780: those of the bud's servers, with what the conversation will add and switch off; of a true id alone."""
    path = f"buds/{parked.bud.pk}/resources/"
    [resource] = send(client, "get", f"{path}?search=menu").json()
    server = resource["server"]["id"]
    assert send(client, "get", f"{path}?search=breakfast").json() == []
    assert send(client, "get", f"{path}?off={server}").json() == []
    parked.bud.mcp_config, parked.bud.takes_all_tools = {"servers": []}, False
    parked.bud.save()
    assert send(client, "get", path).json() == []
    assert send(client, "get", f"{path}?added={server}").json() == [resource]
    assert send(client, "get", f"{path}?added=x").status_code == 422
    stranger = make_tenant("other")
    there = stranger.client("member", headers={"X-Workspace": stranger.workspace.slug})
    assert send(there, "get", path).status_code == 404


def test_a_chat_to_come_offers_what_it_will_use(parked: Chat, client: Client) -> None:
    """REL-1220: prompts, suggestions and tools of the servers that it adds, before there is a conversation."""
    path = f"buds/{parked.bud.pk}"
    [server] = send(client, "get", f"{path}/servers/").json()["servers"]
    [prompt] = send(client, "get", f"{path}/prompts/?search=recommend").json()
    parked.bud.mcp_config, parked.bud.takes_all_tools = {"servers": []}, False
    parked.bud.save()
    assert send(client, "get", f"{path}/prompts/").json() == []
    added = f"added={server['id']}"
    assert send(client, "get", f"{path}/prompts/?{added}").json() == [prompt]
    assert send(client, "get", f"{path}/prompts/?{added}&off={server['id']}").json() == []
    wanted = {"prompt_id": prompt["id"], "arguments": {"taste": "mild"}}
    filled = send(client, "post", f"{path}/prompts/?{added}", wanted).json()
    assert filled["messages"][0]["content"]["text"] == "Recommend something mild for 20 euros."
    asked = {"kind": "prompt", "id": prompt["id"], "argument": "taste", "value": "s"}
    suggested = send(client, "post", f"{path}/completions/?{added}", asked)
    assert (suggested.status_code, suggested.json()) == (200, {"values": []})
    assert send(client, "post", f"{path}/prompts/", wanted).status_code == 404
    assert send(client, "post", f"{path}/completions/", asked).status_code == 404
    shown = send(client, "get", f"{path}/servers/?{added}").json()
    assert [one["source"] for one in shown["servers"]] == ["conversation"]
    assert shown["servers"][0]["tools"] == server["tools"]
    assert server["id"] not in {one["id"] for one in shown["addable"]}
    assert shown["overrides"]["additional_servers"] == [server["id"]]


def test_prompts_of_a_chat_to_come_are_recorded_and_not_for_strangers(
    parked: Chat, client: Client
) -> None:
    """SEC-595: filling one in is in the log, without a chat; nobody of another workspace does it."""
    path = f"buds/{parked.bud.pk}/prompts/"
    [prompt] = send(client, "get", path).json()
    wanted = {"prompt_id": prompt["id"], "arguments": {"taste": "mild"}}
    assert send(client, "post", path, wanted).status_code == 200
    entries = AuditEntry.objects.for_workspace(parked.tenant.workspace)
    entry = entries.filter(action=Action.PROMPT_GET_FINISHED.value).get()
    assert (entry.bud_id, entry.conversation_id) == (parked.bud.pk, None)
    stranger = make_tenant("other")
    there = stranger.client("member", headers={"X-Workspace": stranger.workspace.slug})
    assert send(there, "post", path, wanted).status_code == 404
    assert send(there, "get", path).status_code == 404


def test_prompts_are_listed_filled_and_completed(parked: Chat, client: Client) -> None:
    """MCP specification, "Prompts" and "Completion"; a missing argument is told in plain words."""
    path = f"conversations/{parked.conversation.pk}"
    [prompt] = send(client, "get", f"{path}/prompts/").json()
    assert [one["name"] for one in prompt["arguments"] if one["required"]] == ["taste"]
    filled = send(
        client,
        "post",
        f"{path}/prompts/",
        {"prompt_id": prompt["id"], "arguments": {"taste": "mild"}},
    )
    assert (
        filled.json()["messages"][0]["content"]["text"] == "Recommend something mild for 20 euros."
    )
    manager = parked.tenant.client("admin")
    of_server = send(
        manager, "post", f"prompts/{prompt['id']}/fill/", {"arguments": {"taste": "mild"}}
    )
    assert of_server.status_code == 200
    assert of_server.json()["messages"] == filled.json()["messages"]
    missing = send(client, "post", f"{path}/prompts/", {"prompt_id": prompt["id"]})
    assert 400 <= missing.status_code < 500
    asked = {
        "kind": "prompt",
        "id": str(prompts_of(ChatSetting.of(parked.conversation))[0].pk),
        "argument": "taste",
        "value": "s",
    }
    assert send(client, "post", f"{path}/completions/", asked).json() == {"values": []}


def test_servers_say_why_and_can_be_switched(parked: Chat, client: Client) -> None:
    """Ours: off in one conversation, on in all others; a required one would stay."""
    path = f"conversations/{parked.conversation.pk}"
    shown = send(client, "get", f"{path}/servers/").json()
    [server] = shown["servers"]
    assert (server["name"], server["source"], server["is_usable"]) == ("asking", "bud", True)
    assert {tool["name"] for tool in server["tools"] if tool["is_on"]} >= {"book_table"}
    overrides = {**shown["overrides"], "disabled_servers": [server["id"]]}
    send(client, "patch", f"{path}/", {"mcp_config_overrides": overrides})
    [server] = send(client, "get", f"{path}/servers/").json()["servers"]
    assert (server["is_usable"], server["code"]) == (False, "off_here")
    [of_bud] = send(client, "get", f"buds/{parked.bud.pk}/servers/").json()["servers"]
    assert of_bud["is_usable"]
    parked.model.say("no tools")
    parked.ask()
    assert "tools" not in parked.model.requests[0]


def test_a_permission_is_taken_back_on_its_page(parked: Chat, client: Client) -> None:
    """SEC-62: by its person, and what is no id is told and not a fault of the server."""
    member = parked.tenant.client("member")
    tool = McpTool.objects.for_workspace(parked.tenant.workspace).first()
    assert tool is not None
    given = ToolPermission.objects.create(
        workspace=parked.tenant.workspace,
        user=parked.tenant.member,
        tool=tool,
        definition_hash=tool.definition_hash,
        conversation_id=parked.conversation.pk,
    )
    page = f"/w/{parked.tenant.workspace.slug}/tool-permissions/"
    assert f"/c/{parked.conversation.pk}/" in member.get(page).content.decode()
    assert member.post(page, {"permission": "x"}).status_code == 404
    assert member.post(page, {"permission": str(given.pk)}, follow=True).status_code == 200
    rows = ToolPermission.objects.for_workspace(parked.tenant.workspace)
    assert not rows.exists()


def test_permissions_are_listed_and_taken_back(parked: Chat, client: Client) -> None:
    """SEC-62: only one's own; one that has lapsed says why."""
    McpServer.objects.for_workspace(parked.tenant.workspace).update(trusts_annotations=False)
    parked.model.call(("asking__slow_echo", {"text": "x"}))
    parked.model.say("done")
    parked.send()
    parked.watching.turn("waiting_for_approval")
    decide(
        call=parked.calls()[0],
        decision=Decision.APPROVED,
        actor=parked.actor,
        remember=Remember.EVERYWHERE,
    )
    parked.watching.turn("completed")
    [row] = send(client, "get", "tool-permissions/").json()["results"]
    assert (row["tool"]["name"], row["conversation"], row["is_current"]) == (
        "slow_echo",
        None,
        True,
    )
    rows = ToolPermission.objects.for_workspace(parked.tenant.workspace)
    rows.update(definition_hash="0" * 64)
    [row] = send(client, "get", "tool-permissions/").json()["results"]
    assert (row["is_current"], "changed" in row["reason"]) == (False, True)
    other = parked.tenant.client("admin", headers={"X-Workspace": parked.tenant.workspace.slug})
    assert send(other, "delete", f"tool-permissions/{row['id']}/").status_code == 404
    page = f"/w/{parked.tenant.workspace.slug}/tool-permissions/"
    shown = client.get(page).content.decode()
    assert "The tool has changed since. It asks again." in shown
    assert "all your chats" in shown
    assert "None yet." in other.get(page).content.decode()
    assert other.post(page, {"permission": row["id"]}).status_code == 404
    assert send(client, "delete", f"tool-permissions/{row['id']}/").status_code == 204
    assert not rows.exists()


def test_every_prompt_is_found_by_its_name_and_can_be_used(parked: Chat, client: Client) -> None:
    """REL-912: also those that a list of the first ones does not reach."""
    [first] = prompts_of(ChatSetting.of(parked.conversation))
    path = f"conversations/{parked.conversation.pk}/prompts/"
    with patch.object(offers, "MOST_PROMPTS", 0):
        filled = {"prompt_id": str(first.pk), "arguments": {"taste": "mild"}}
        assert send(client, "post", path, filled).status_code == 200
    others = []
    for number in range(offers.MOST_PROMPTS):
        other = copy(first)
        other.pk, other._state = uuid7(), ModelState()
        other.name, other.title = f"A {number:03}", ""
        others.append(other)
    McpPrompt.objects.bulk_create(others)
    assert str(first.pk) not in {one["id"] for one in send(client, "get", path).json()}
    found = send(client, "get", f"{path}?search={first.name}").json()
    assert str(first.pk) in {one["id"] for one in found}
