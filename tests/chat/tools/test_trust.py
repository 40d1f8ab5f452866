"""What models read of servers: named, cleaned, and remembered as coming from outside."""

from __future__ import annotations

import pytest
from mcp_types import ToolAnnotations

from audit.models import AuditEntry
from chat.models import Bud, ToolCall, Turn
from chat.services.approvals import decide
from chat.services.branches import edit_message, fork_conversation
from chat.services.turns import send_message
from chat.values import Decision, Remember
from mcp_servers.client import transports
from mcp_servers.models import (
    ApprovalOverride,
    GlobalServer,
    McpServer,
    McpTool,
    ToolPermission,
)
from mcp_servers.registry.consent import permissions
from mcp_servers.registry.services import set_approval_override
from mcp_servers.registry.services.rules import set_workspace_rule
from tests.chat.conftest import Chat, Watching
from tests.mcp_servers.factories import looked_at
from workspaces.errors import Conflict, PermissionDenied
from workspaces.models import Workspace


def tool(chat: Chat, name: str) -> McpTool:
    rows = McpTool.objects.for_workspace(chat.tenant.workspace).select_related("server")
    return rows.get(server=chat.row, name=name)


def let_run(chat: Chat, name: str) -> None:
    set_approval_override(
        tool=tool(chat, name), override=ApprovalOverride.AUTO, actor=chat.tenant.actor()
    )


def wait_for_approval(chat: Chat) -> None:
    chat.send()
    chat.watching.turn("waiting_for_approval")


def approve(chat: Chat, remember: Remember = Remember.NOT) -> None:
    [call] = [one for one in chat.calls() if one.status == "waiting_for_approval"]
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor, remember=remember)


def test_a_tool_that_sends_out_asks_once_something_from_outside_was_read(chat: Chat) -> None:
    """SEC-70: although an administrator lets it run by itself; before that it just runs."""
    let_run(chat, "destroy")
    chat.model.call(("counting__destroy", {"what": "a"}))
    chat.model.call(("counting__echo", {"text": "a web page"}))
    chat.model.call(("counting__destroy", {"what": "b"}))
    chat.model.say("done")
    wait_for_approval(chat)
    assert chat.server.calls[0] == ("destroy", {"what": "a"})
    call = chat.calls()[-1]
    assert call.approval_rule == "turn.untrusted_content"
    assert "outside" in call.approval_reason
    approve(chat)
    chat.watching.turn("completed")


def reach_nothing(chat: Chat, name: str) -> None:
    """Its trusted server says that this tool reaches nothing, so what it brings is nobody's words."""
    rows = McpTool.objects.for_workspace(chat.tenant.workspace).filter(pk=tool(chat, name).pk)
    rows.update(annotations={"openWorldHint": False})


def say_plain(chat: Chat, text: str) -> None:
    """Have the model call the tool that says nothing about itself, and then answer."""
    chat.watching.forget()
    chat.model.call(("counting__plain", {"text": text}))
    chat.model.say(f"said {text}")


@pytest.mark.parametrize("remember", [Remember.CONVERSATION, Remember.EVERYWHERE])
def test_always_asks_no_more_until_it_is_taken_back(chat: Chat, remember: Remember) -> None:
    """SEC-62: remembered with the definition, for this person and as far as they said."""
    reach_nothing(chat, "plain")
    say_plain(chat, "1")
    wait_for_approval(chat)
    assert chat.snapshot()["tool_calls"][0]["approval"]["can_remember"]
    approve(chat, remember)
    chat.watching.turn("completed")
    say_plain(chat, "2")
    chat.ask()
    assert [call.approval_rule for call in chat.calls()] == ["hints.absent", ""]
    [permission] = ToolPermission.objects.for_workspace(chat.tenant.workspace)
    here = chat.conversation.pk if remember is Remember.CONVERSATION else None
    assert permission.conversation_id == here
    permissions.forget_permission(permission=permission, actor=chat.actor)
    say_plain(chat, "3")
    wait_for_approval(chat)


def test_always_is_void_once_the_tool_changes(chat: Chat) -> None:
    """SEC-62: another definition is another tool."""
    say_plain(chat, "1")
    wait_for_approval(chat)
    approve(chat, Remember.EVERYWHERE)
    chat.watching.turn("completed")
    rows = McpTool.objects.for_workspace(chat.tenant.workspace).filter(pk=tool(chat, "plain").pk)
    rows.update(definition_hash="0" * 64, approved_hash="0" * 64)
    say_plain(chat, "2")
    wait_for_approval(chat)


def test_always_does_not_answer_for_what_was_read_outside(chat: Chat) -> None:
    """SEC-62, SEC-70: within a turn that has read something from outside it asks all the same, and says why."""
    say_plain(chat, "1")
    wait_for_approval(chat)
    approve(chat, Remember.EVERYWHERE)
    chat.watching.turn("completed")
    chat.watching.forget()
    chat.model.call(("counting__echo", {"text": "a web page"}))
    chat.model.call(("counting__plain", {"text": "2"}))
    wait_for_approval(chat)
    assert chat.calls()[-1].approval_rule == "turn.untrusted_content"


def test_a_workspace_may_refuse_to_remember(chat: Chat) -> None:
    """SEC-62: then nothing is approved either; the person decides anew."""
    Workspace.objects.filter(pk=chat.tenant.workspace.pk).update(remembers_permissions=False)
    chat.model.call(("counting__plain", {"text": "1"}))
    wait_for_approval(chat)
    with pytest.raises(PermissionDenied):
        approve(chat, Remember.EVERYWHERE)
    assert chat.calls()[0].status == "waiting_for_approval"


def test_what_an_administrator_wants_asked_is_asked_each_time(chat: Chat) -> None:
    """SEC-62: "asks first" cannot be waved through for good."""
    set_approval_override(
        tool=tool(chat, "echo"), override=ApprovalOverride.CONFIRM, actor=chat.tenant.actor()
    )
    chat.model.call(("counting__echo", {"text": "1"}))
    wait_for_approval(chat)
    assert not chat.snapshot()["tool_calls"][0]["approval"]["can_remember"]
    with pytest.raises(Conflict):
        approve(chat, Remember.CONVERSATION)


def test_hidden_characters_do_not_reach_the_model(chat: Chat) -> None:
    """SEC-67: neither by a description nor by a result; people see them written out."""
    chat.server.add_tool(
        "sly",
        ToolAnnotations(read_only_hint=True),
        "Look\u200bs honest\u202e. \U000e0041\x1b[31mred",
    )
    looked_at(chat.tenant, chat.row)
    McpTool.objects.for_workspace(chat.tenant.workspace).filter(name="sly").update(is_enabled=True)
    row = tool(chat, "sly")
    McpTool.objects.for_workspace(chat.tenant.workspace).filter(pk=row.pk).update(
        approved_hash=row.definition_hash
    )
    chat.model.call(("counting__sly", {"text": "a\u202eb\u200bc"}))
    chat.model.say("done")
    chat.ask()
    offered = {one["function"]["name"]: one for one in chat.model.requests[0]["tools"]}
    assert offered["counting__sly"]["function"]["description"] == "[counting] Looks honest. red"
    assert chat.model.requests[1]["messages"][-1]["content"] == "sly: abc"
    shown = chat.snapshot()["tool_calls"][0]["result"]["content"][0]["text"]
    assert shown == "sly: a‹U+202E›b‹U+200B›c"


def test_instructions_of_a_server_are_off_until_somebody_wants_them(parked: Chat) -> None:
    """SEC-68: then the model reads them as that server's own words, cut and cleaned."""
    parked.model.say("one")
    parked.ask()
    assert all(m["role"] != "system" for m in parked.model.requests[0]["messages"])
    server = McpServer.objects.for_workspace(parked.tenant.workspace).get(pk=parked.row.pk)
    server.uses_instructions = True
    server.save()
    server.state.write(instructions="Be polite.\u202e " + "x" * 5_000)
    parked.watching.forget()
    parked.model.say("two")
    parked.ask()
    system = parked.model.requests[1]["messages"][0]
    assert system["role"] == "system"
    assert "The MCP server “asking” says about its own tools:" in system["content"]
    assert "> Be polite. xxx" in system["content"]
    assert "\u202e" not in system["content"]
    assert len(system["content"]) < 2_600


def test_a_result_that_is_given_again_says_so(chat: Chat) -> None:
    """Ours: from earlier, and when; the server is not asked a second time."""
    rows = McpTool.objects.for_workspace(chat.tenant.workspace).filter(pk=tool(chat, "echo").pk)
    rows.update(cache_seconds=60)
    for _ in range(2):
        chat.model.call(("counting__echo", {"text": "same"}))
    chat.model.say("done")
    chat.ask()
    first, second = chat.snapshot()["tool_calls"]
    assert (first["cached_at"], second["cached_at"] is not None) == (None, True)
    assert chat.server.names() == ["echo"]
    assert [call.was_cached for call in chat.calls()] == [False, True]


PAGE = "https://news.example/today?session=1"
LEAK = "https://evil.example/?d=secret"


def read_page(chat: Chat, text: str = "read the news at news.example") -> Turn:
    """A whole turn in which the model reads words from outside."""
    chat.watching.forget()
    chat.model.call(("counting__echo", {"text": PAGE}))
    chat.model.say("read")
    turn = chat.ask(text)
    chat.watching.forget()
    return turn


def carry_out(chat: Chat, text: str, question: str = "go") -> None:
    """A turn whose model calls a tool that only reads, with this in its arguments."""
    chat.watching.forget()
    chat.model.call(("counting__echo", {"text": text}))
    chat.model.say("done")
    chat.send(question)


def asked(chat: Chat) -> ToolCall:
    """The call that waits for the person."""
    chat.watching.turn("waiting_for_approval")
    call = chat.calls()[-1]
    assert call.approval_rule == "turn.untrusted_content"
    return call


def test_the_taint_outlives_the_turn_and_the_card_names_the_source(chat: Chat) -> None:
    """SEC-270: the text is still in what the model reads, so a later turn asks; without what was secret in the address."""
    let_run(chat, "destroy")
    read_page(chat)
    chat.model.call(("counting__destroy", {"what": "b"}))
    wait_for_approval(chat)
    call = asked(chat)
    assert "because the page “https://news.example/today” was read" in call.approval_reason
    assert "session=1" not in call.approval_reason
    assert chat.reload(call.turn).has_read_untrusted


def test_a_path_without_the_content_is_not_tainted(chat: Chat) -> None:
    """SEC-270: asked differently, the model reads nothing of what the other branch has read."""
    let_run(chat, "destroy")
    turn = read_page(chat)
    chat.model.call(("counting__destroy", {"what": "b"}))
    chat.model.say("done")
    edit_message(message=turn.user_message, client_id="other", text="just do it", actor=chat.actor)
    chat.watching.turn("completed")
    assert [call.approval_rule for call in chat.calls()] == ["", ""]


def test_a_fork_keeps_the_taint(chat: Chat) -> None:
    """SEC-270: the content is copied with the path, and what was approved elsewhere is not."""
    turn = read_page(chat)
    carry_out(chat, LEAK)
    asked(chat)
    approve(chat)
    chat.watching.turn("completed")
    answer = chat.reload_conversation().messages.latest("order_key")
    copy = fork_conversation(
        message=answer, client_id="fork", owner=chat.tenant.member, actor=chat.actor
    )
    chat.model.call(("counting__echo", {"text": LEAK}))
    chat.model.say("done")
    watching = Watching(copy.pk)
    try:
        send_message(conversation=copy, client_id="x", text="go", actor=chat.actor)
        watching.turn("waiting_for_approval")
    finally:
        watching.close()
    assert turn.conversation_id != copy.pk


def test_a_reading_tool_asks_once_for_each_place_that_it_can_carry_data_to(chat: Chat) -> None:
    """SEC-271: in its arguments; the host is named on the card, and approved for this conversation alone."""
    read_page(chat)
    carry_out(chat, LEAK)
    assert "can send data to evil.example" in asked(chat).approval_reason
    assert chat.server.calls[-1] == ("echo", {"text": PAGE})
    approve(chat)
    chat.watching.turn("completed")
    carry_out(chat, "https://evil.example/another")
    chat.watching.turn("completed")
    carry_out(chat, "https://x.evil.example/")
    assert "x.evil.example" in asked(chat).approval_reason


def test_where_the_person_or_the_bud_wants_data_to_go_is_not_asked_about(chat: Chat) -> None:
    """SEC-271: by their own words; a result names nothing."""
    bud_rows = Bud.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.bud.pk)
    bud_rows.update(system_prompt="Look things up at https://wiki.example/start.")
    read_page(chat)
    carry_out(chat, "https://docs.example/a", question="what does docs.example say?")
    chat.watching.turn("completed")
    carry_out(chat, "https://wiki.example/b")
    chat.watching.turn("completed")
    carry_out(chat, "just words")  # the bud lists this server
    chat.watching.turn("completed")
    carry_out(chat, "https://evil.example/?named=docs.example")
    asked(chat)


def test_a_server_that_nobody_named_asks_once(chat: Chat) -> None:
    """SEC-271: one that the workspace adds to every chat, whose operator would get what is in the arguments."""
    bud_rows = Bud.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.bud.pk)
    bud_rows.update(mcp_config={"servers": []})
    McpServer.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.row.pk).update(
        global_server=GlobalServer.objects.create(
            name="required", transport=transports.STREAMABLE_HTTP, is_required=True
        )
    )
    read_page(chat)
    carry_out(chat, "words")
    assert "can send data to counting" in asked(chat).approval_reason
    approve(chat)
    chat.watching.turn("completed")
    carry_out(chat, "other words")
    chat.watching.turn("completed")


def test_a_writing_tool_asks_each_time(chat: Chat) -> None:
    """SEC-70, SEC-271: what was approved before, and where the person wants it, changes nothing."""
    let_run(chat, "destroy")
    read_page(chat)
    for number in range(2):
        chat.watching.forget()
        chat.model.call(("counting__destroy", {"what": f"{number}"}))
        chat.model.say("done")
        chat.send("use counting to destroy it")
        asked(chat)
        approve(chat)
        chat.watching.turn("completed")


def test_a_workspace_may_let_reading_tools_reach_outside(chat: Chat) -> None:
    """SEC-272: its owner says so; writing tools ask all the same."""
    let_run(chat, "destroy")
    set_workspace_rule(
        workspace=chat.tenant.workspace,
        rule="reads_outside_unasked",
        is_on=True,
        actor=chat.tenant.actor("owner"),
    )
    read_page(chat)
    carry_out(chat, LEAK)
    chat.watching.turn("completed")
    chat.watching.forget()
    chat.model.call(("counting__destroy", {"what": "b"}))
    wait_for_approval(chat)
    asked(chat)


def test_a_file_that_was_written_after_reading_outside_counts_as_outside(chat: Chat) -> None:
    """SEC-270: the model may have copied the words; a branch that reads the file reads them."""
    bud_rows = Bud.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.bud.pk)
    bud_rows.update(makes_artifacts=True)
    chat.model.call(("counting__echo", {"text": PAGE}))
    chat.model.call(("create_artifact", {"name": "note.txt", "content": "copied"}))
    chat.model.say("done")
    turn = chat.ask()
    chat.watching.forget()
    chat.model.call(("read_artifact", {"name": "note.txt"}))
    chat.model.call(("counting__echo", {"text": LEAK}))
    edit_message(message=turn.user_message, client_id="other", text="read it", actor=chat.actor)
    assert "because the file “note.txt” was read" in asked(chat).approval_reason


def test_an_address_that_the_model_made_up_is_not_read(chat: Chat) -> None:
    """SEC-271: reading a resource can carry data out too; nobody is asked, and the model is told why."""
    bud_rows = Bud.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.bud.pk)
    bud_rows.update(makes_artifacts=True)
    read_page(chat)
    chat.model.call(
        ("retrieve_file_from_mcp", {"server": "counting", "resource": LEAK, "name": "a.txt"})
    )
    chat.model.say("done")
    chat.ask()
    call = chat.calls()[-1]
    assert call.status == "failed"
    assert "Ask the user to name the address" in call.model_text
    log = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    assert not log.filter(action__startswith="resource_read").exists()
