"""A bud that looks tools up: the prompt stays small, and each call is a call of the real tool."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEntry
from chat.engine.requests import is_offered
from chat.pages.bud_form import BudEditorForm, initial_of
from chat.services.approvals import decide
from chat.tools.builtin import on_demand
from chat.tools.offered import OfferedTool, ServerInstructions
from chat.tools.toolset import resolve_toolset
from chat.values import Decision
from mcp_servers.models import McpServer, McpTool
from tests.chat.conftest import Chat
from tests.mcp_servers.factories import stored_tool
from workspaces.database.prepared import PreparedRows

ALL_THREE = {"mcp_list_servers", "mcp_list_tools", "mcp_call_tool"}


@pytest.fixture
def looking(chat: Chat) -> Chat:
    """A conversation whose bud looks its tools up."""
    chat.bud.mcp_config = {**chat.bud.mcp_config, "tool_exposure": "on_demand"}
    chat.bud.save(update_fields=["mcp_config"])
    return chat


def call_of(tool: str, server: str = "counting", **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "mcp_call_tool", {"server": server, "tool": tool, "arguments": arguments}


def log_of(chat: Chat) -> list[tuple[str, str, str]]:
    found = AuditEntry.objects.for_workspace(chat.tenant.workspace).order_by("id")
    return [
        (entry.action, entry.server_name, entry.tool_name)
        for entry in found
        if entry.action.startswith(("tool_call", "approval"))
    ]


def test_the_prompt_stays_small_with_300_tools(looking: Chat) -> None:
    """Ours: three tools are offered, whatever the servers have; the others are found and called."""
    stored = [stored_tool(looking.row, f"tool_{number}") for number in range(300)]
    rows = McpTool.objects.for_workspace(looking.tenant.workspace)
    rows.filter(pk=stored[7].pk).update(description="Sends carrier pigeons to Acme")
    model = looking.model
    model.call(("mcp_list_servers", {}))
    model.call(("mcp_list_tools", {"query": "pigeon"}))
    model.call(call_of("echo", text="hello"))
    model.say("done")
    looking.ask()
    for request in model.requests:
        assert {one["function"]["name"] for one in request["tools"]} == ALL_THREE
        assert len(json.dumps(request["tools"])) < 4_000
    servers, found, echoed = looking.results()
    [server] = json.loads(servers)["servers"]
    assert server["server"] == "counting"
    assert server["tools"] > 300
    assert [one["tool"] for one in json.loads(found)["tools"]] == ["tool_7"]
    assert "hello" in echoed
    assert looking.server.calls == [("echo", {"text": "hello"})]


def test_thousands_of_tools_are_one_value_until_one_of_them_is_another(
    looking: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-567: a turn reads no row of a tool that it knows, and each change of one."""

    def rows_of_tools() -> int:
        read: list[int] = []
        fetch = PreparedRows._fetch

        def counted(self: Any, statement: Any, *rest: Any) -> Any:
            rows = fetch(self, statement, *rest)
            if ' FROM "mcp_servers_mcptool"' in statement.sql:
                read.append(len(rows))
            return rows

        with monkeypatch.context() as patch:
            patch.setattr(PreparedRows, "_fetch", counted)
            offered = resolve_toolset(looking.bud, looking.conversation).on_demand
        assert len(offered) == callable_tools.count()
        return sum(read)

    stored = [stored_tool(looking.row, f"tool_{number}") for number in range(2_000)]
    tools = McpTool.objects.for_workspace(looking.tenant.workspace)
    callable_tools = tools.callable()
    everything = callable_tools.count() + 1
    assert rows_of_tools() == everything
    assert rows_of_tools() == 1
    tools.filter(pk=stored[7].pk).update(definition_hash="b" * 64, approved_hash="b" * 64)
    assert rows_of_tools() == everything
    tools.filter(pk=stored[8].pk).update(is_enabled=False)
    assert rows_of_tools() == everything - 1
    tools.filter(pk=stored[8].pk).update(is_enabled=True)
    assert rows_of_tools() in (1, everything)
    assert rows_of_tools() == 1
    tools.update(is_enabled=False)
    assert rows_of_tools() == 1


def test_people_and_the_log_see_the_real_tool(looking: Chat) -> None:
    """SEC-60, SEC-63: a destructive tool asks, with its own name and arguments; what is approved is what runs."""
    looking.model.call(call_of("destroy", what="the world"))
    looking.send()
    looking.watching.turn("waiting_for_approval")
    [card] = looking.snapshot()["tool_calls"]
    assert (card["server"]["name"], card["tool"]["name"]) == ("counting", "destroy")
    assert (card["arguments"], card["builtin"]) == ({"what": "the world"}, None)
    assert "what" in card["input_schema"]["properties"]
    looking.model.say("gone")
    decide(
        call=looking.calls()[0],
        decision=Decision.APPROVED,
        actor=looking.actor,
        arguments={"what": "a crumb"},
    )
    looking.watching.turn("completed")
    assert looking.server.calls == [("destroy", {"what": "a crumb"})]
    assert log_of(looking) == [
        (action, "counting", "destroy")
        for action in (
            "approval.requested",
            "approval.granted",
            "tool_call.requested",
            "tool_call.finished",
        )
    ]
    [asked] = looking.model.requests[1]["messages"][-2]["tool_calls"]
    assert asked["function"]["name"] == "mcp_call_tool"


def test_a_tool_that_policy_denies_is_neither_found_nor_called(looking: Chat) -> None:
    """SEC-61: what the turn may not use is not there, by whatever road."""
    rows = McpTool.objects.for_workspace(looking.tenant.workspace)
    rows.filter(name="plain").update(approval_override="deny")
    rows.filter(name="destroy").update(is_enabled=False)
    model = looking.model
    model.call(("mcp_list_tools", {"server": "counting"}))
    model.call(call_of("destroy", what="it"), call_of("plain", text="it"))
    model.say("done")
    looking.ask()
    listed = {one["tool"] for one in json.loads(looking.results()[0])["tools"]}
    assert "destroy" not in listed
    assert looking.server.calls == []
    assert all(call.status in ("failed", "refused") for call in looking.calls()[1:])


def test_an_unknown_tool_is_answered_with_the_closest_names(looking: Chat) -> None:
    """Ours: nothing is guessed; the model reads what there is, and the refusal is on record."""
    model = looking.model
    model.call(call_of("ecko", text="a"), call_of("echo", server="countin", text="a"))
    model.call(("mcp_call_tool", {"tool": "echo"}))
    model.say("done")
    looking.ask()
    wrong_tool, wrong_server, no_server = looking.results()
    assert "Did you mean: echo" in wrong_tool
    assert "Did you mean: counting" in wrong_server
    assert "server" in no_server
    assert looking.server.calls == []
    assert [action for action, _, _ in log_of(looking)] == ["tool_call.refused"] * 3


def test_it_works_for_models_that_know_only_text(looking: Chat) -> None:
    """Ours: with fenced commands as well."""
    looking.bud.tool_protocol = "fenced_json"
    looking.bud.save(update_fields=["tool_protocol"])
    name, arguments = call_of("echo", text="hello")
    block = json.dumps({"command": name, "arguments": arguments})
    looking.model.say(f"```json\n{block}\n```")
    looking.model.say("done")
    looking.ask()
    assert looking.server.calls == [("echo", {"text": "hello"})]
    assert "`mcp_list_tools`" in looking.model.requests[0]["messages"][0]["content"]
    assert "counting__echo" not in json.dumps(looking.model.requests[0])


def test_a_round_of_calls_of_different_tools_is_no_loop(looking: Chat) -> None:
    """Ours: calls through the one tool are told apart by what they call; the same one over and over is stopped."""
    for name in ["echo", "fail"] * 3:
        looking.model.call(call_of(name, text="a"))
    looking.model.say("done")
    assert looking.ask().status == "completed"
    for _ in range(4):
        looking.model.call(call_of("echo", text="a"))
    turn = looking.ask("again")
    assert (turn.status, turn.error_code) == ("failed", "limit_reached")


def test_nobody_else_is_offered_them(chat: Chat) -> None:
    """Ours: only who asked for it; and a tool that has to be called is told of."""
    names = {tool.function_name for tool in resolve_toolset(chat.bud, chat.conversation).tools}
    assert names.isdisjoint(ALL_THREE)
    choice = {"type": "function", "function": {"name": "counting.echo"}}
    config = {**chat.bud.mcp_config, "tool_exposure": "on_demand", "tool_choice": choice}
    chat.bud.mcp_config = config
    toolset = resolve_toolset(chat.bud, chat.conversation)
    assert {tool.function_name for tool in toolset.tools} == {"counting__echo", *ALL_THREE}
    assert toolset.choice_for_step(0) == {
        "type": "function",
        "function": {"name": "counting__echo"},
    }
    chat.bud.mcp_config = {"servers": [], "tool_exposure": "on_demand"}
    chat.bud.takes_all_tools = False
    assert resolve_toolset(chat.bud, chat.conversation).tools == ()


def test_a_bud_that_no_longer_looks_tools_up_is_refused_them(looking: Chat) -> None:
    """Ours: today's configuration counts when a call runs."""
    assert is_offered("mcp_list_tools", looking.bud)
    assert not is_offered("create_artifact", looking.bud)
    looking.bud.mcp_config = {**looking.bud.mcp_config, "tool_exposure": "all"}
    assert not is_offered("mcp_list_tools", looking.bud)


def id_of(server: str) -> UUID:
    return uuid5(NAMESPACE_DNS, server)


def offered(name: str, server: str = "mail", description: str = "", **schema: Any) -> OfferedTool:
    return OfferedTool(
        function_name=f"{server}__{name}",
        server_id=id_of(server),
        server_name=server,
        tool_id=None,
        tool_name=name,
        title="",
        description=description,
        input_schema=schema,
        annotations={},
        definition_hash="",
    )


def test_the_best_matches_come_first() -> None:
    """Ours: the name itself, then words in names, then words in descriptions."""
    tools = [
        offered("read", description="Reads a letter"),
        offered("send_letter"),
        offered("letter"),
        offered("delete"),
    ]
    found = json.loads(on_demand.list_tools(tools, {"query": "letter"}))["tools"]
    assert [one["tool"] for one in found] == ["letter", "send_letter", "read"]
    assert "No tool fits" in on_demand.list_tools(tools, {"query": "pigeon"})
    assert "no server 'post'" in on_demand.list_tools(tools, {"server": "post"})


def test_schemas_are_left_out_where_there_is_no_room() -> None:
    """Ours: an answer stays readable however large a server's schemas are."""
    big = {"type": "object", "title": "x" * 9_000}
    tools = [offered(f"tool_{number}", **big) for number in range(150)]
    answer = json.loads(on_demand.list_tools(tools, {"server": "mail"}))
    assert [("arguments" in one) for one in answer["tools"]].count(True) == 2
    assert (len(answer["tools"]), answer["more"]) == (on_demand.MOST_LISTED, 50)


def test_what_a_server_says_of_itself_is_read_with_its_tools() -> None:
    """Ours: instead of standing in every prompt; and only of the server that was asked for."""
    notes = [
        ServerInstructions("mail", "Be brief.", id_of("mail")),
        ServerInstructions("shop", "Buy!", id_of("shop")),
    ]
    tools = [offered("read"), offered("buy", server="shop")]
    assert "Be brief." in on_demand.list_tools(tools, {"server": "mail"}, notes)
    assert "Buy!" not in on_demand.list_tools(tools, {"server": "mail"}, notes)
    assert "Buy!" not in on_demand.list_tools(tools, {}, notes)


def test_servers_of_one_name_are_told_apart() -> None:
    """SEC-61: one's own and the workspace's may be called the same; the model names the one it read about."""
    mine, ours = replace(offered("read"), server_id=id_of("mine")), offered("read")
    posing = replace(
        offered("read"),
        server_id=id_of("posing"),
        server_name=f"mail ({hashlib.sha256(str(id_of('mail')).encode()).hexdigest()[:8]})",
    )
    tools = [mine, ours, posing, offered("buy", server="shop")]
    servers = json.loads(on_demand.list_servers(tools))["servers"]
    labels = [one["server"] for one in servers]
    assert len(set(labels)) == 4
    assert "mail" not in labels
    assert "shop" in labels
    found: list[OfferedTool] = []
    for label in labels:
        [listed] = json.loads(on_demand.list_tools(tools, {"server": label}))["tools"]
        assert listed["server"] == label
        answer = on_demand.unwrap(tools, {"server": label, "tool": listed["tool"]})
        assert isinstance(answer, tuple)
        found.append(answer[0])
    assert {tool.server_id for tool in found} == {tool.server_id for tool in tools}
    refused = on_demand.unwrap(tools, {"server": "mail", "tool": "read"})
    assert isinstance(refused, str)
    assert "There is no server 'mail'" in refused


@pytest.mark.parametrize("written", [{"text": "a"}, '{"text": "a"}'])
def test_arguments_may_come_as_text(written: Any) -> None:
    """Ours: as some models write them."""
    given = {"server": "mail", "tool": "read", "arguments": written}
    found = on_demand.unwrap([offered("read")], given)
    assert isinstance(found, tuple)
    assert found[1] == {"text": "a"}


@pytest.mark.parametrize("is_looked_up", [True, False])
def test_an_administrator_switches_it_in_the_form(looking: Chat, is_looked_up: bool) -> None:
    """Ours: the editor shows how it is, and what the configuration says beside it stays."""
    bud = looking.bud
    assert initial_of(bud)["mcp_config"]["tool_exposure"] == "on_demand"
    config = {**bud.mcp_config, "tool_exposure": "on_demand" if is_looked_up else "all"}
    given = {name: value for name, value in initial_of(bud).items() if value is not None}
    form = BudEditorForm({**given, "mcp_config": json.dumps(config)})
    assert form.is_valid(), form.errors
    assert form.values()["mcp_config"] == config


def test_definitions_are_read_once_until_one_changes(looking: Chat) -> None:
    """REL-645: of thousands of tools, a turn reads ids and hashes; what is another one now is read anew."""
    stored = [stored_tool(looking.row, f"tool_{number}") for number in range(20)]

    def look() -> tuple[dict[str, OfferedTool], bool]:
        conversation = looking.reload_conversation()
        with CaptureQueriesContext(connection) as asked:
            found = resolve_toolset(conversation.bud, conversation)
        has_read = any("input_schema" in one["sql"] for one in asked.captured_queries)
        return {tool.tool_name: tool for tool in found.on_demand}, has_read

    first, has_read = look()
    assert has_read
    assert look() == (first, False)
    rows = McpTool.objects.for_workspace(looking.tenant.workspace)
    rows.filter(pk=stored[3].pk).update(is_enabled=False)
    assert "tool_3" not in look()[0]
    rows.filter(pk=stored[3].pk).update(is_enabled=True)
    assert look() == (first, False)
    changed = {"description": "Another", "definition_hash": "9" * 64, "approved_hash": "9" * 64}
    rows.filter(pk=stored[4].pk).update(**changed)
    assert look()[0]["tool_4"].description == "Another"
    McpServer.objects.for_workspace(looking.tenant.workspace).update(name="Renamed")
    found, has_read = look()
    assert has_read
    assert {tool.server_name for tool in found.values()} == {"Renamed"}
