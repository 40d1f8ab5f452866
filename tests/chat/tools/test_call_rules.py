"""Call rules in chats: what they block, and calls that wait for a second person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEntry
from audit.reports.providers import rule_in_words
from chat.live.recording import Changes
from chat.models import ToolCall, Turn
from chat.services import approvals
from chat.services.approvals import decide, decide_as_second_person, expire_approvals
from chat.services.pending_decisions import waiting_for
from chat.services.resolutions import resolve_call
from chat.services.turns import queue_again
from chat.values import Decision, Remember, Resolution
from mcp_servers.client.connections import runtime
from mcp_servers.models import CallRule, McpTool
from mcp_servers.registry.consent.permissions import ask_always
from mcp_servers.registry.services.call_rules import CallRuleDraft, create_call_rule
from tests.chat.conftest import Chat, Watching
from tests.mcp_servers.factories import tool_of
from tests.threads import Threads
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, PermissionDenied
from workspaces.models import Membership


def rule(chat: Chat, **fields: Any) -> CallRule:
    """A rule of the chat's workspace."""
    draft = CallRuleDraft(
        **{
            "name": "Careful",
            "effect": "confirm",
            "servers": ["counting"],
            "tools": ["*"],
            "reason": "It costs money.",
            **fields,
        }
    )
    return create_call_rule(
        workspace=chat.tenant.workspace, draft=draft, actor=chat.tenant.actor("admin")
    )


def second_person_rule(chat: Chat, **fields: Any) -> CallRule:
    return rule(chat, approver="second_person", **fields)


def waiting_call(chat: Chat, name: str = "destroy", **arguments: Any) -> ToolCall:
    chat.model.call((f"counting__{name}", arguments or {"what": "the world"}))
    chat.send()
    chat.watching.turn("waiting_for_approval")
    return chat.calls()[-1]


def entries(chat: Chat, action: str) -> list[AuditEntry]:
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    return list(rows.filter(action=action).order_by("pk"))


def listed(chat: Chat, role: str) -> list[Any]:
    return waiting_for(workspace=chat.tenant.workspace, person=chat.tenant.people[role])


def test_a_rule_blocks_a_call_and_the_model_reads_why(chat: Chat) -> None:
    """SEC-540: nothing is sent; the log names the rule."""
    made = rule(
        chat,
        effect="deny",
        conditions=[{"path": "what", "operator": "contains", "value": "WORLD"}],
    )
    chat.model.call(("counting__destroy", {"what": "the world"}))
    chat.model.say("all right")
    chat.ask()
    assert chat.server.calls == []
    read = chat.model.requests[1]["messages"][-1]["content"]
    assert "The call rule “Careful” blocks this call. It costs money." in read
    (refused,) = entries(chat, "tool_call.refused")
    assert (refused.refused_by, refused.rule) == ("policy", f"call_rule.{made.pk}")
    assert rule_in_words(refused.rule) == "A call rule of the workspace decided."


def test_an_edit_slips_past_no_rule(chat: Chat) -> None:
    """SEC-546: edited arguments are checked anew; the call waits on, for its person or for a second one."""
    rule(
        chat,
        effect="deny",
        name="No crumbs",
        conditions=[{"path": "what", "operator": "equals", "value": "a crumb"}],
    )
    second_person_rule(chat, conditions=[{"path": "what", "operator": "equals", "value": "a moon"}])
    call = waiting_call(chat)
    with pytest.raises(Conflict, match="No crumbs"):
        decide(
            call=call,
            decision=Decision.APPROVED,
            actor=chat.actor,
            arguments={"what": "a crumb"},
        )
    waits = decide(
        call=call, decision=Decision.APPROVED, actor=chat.actor, arguments={"what": "a moon"}
    )
    assert (waits.status, waits.needs_second_person) == ("waiting_for_approval", True)
    with pytest.raises(PermissionDenied):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    assert chat.server.calls == []
    chat.model.say("done")
    decide_as_second_person(
        call=waits, decision=Decision.APPROVED, actor=chat.tenant.actor("admin")
    )
    chat.watching.turn("completed")
    assert chat.server.calls == [("destroy", {"what": "a moon"})]


def test_a_second_person_allows_a_call(chat: Chat) -> None:
    """REL-1092, SEC-547: never who asked; an admin sees the call and nothing else, and the log says who decided by which rule."""
    made = second_person_rule(chat)
    call = waiting_call(chat)
    card = chat.snapshot()["tool_calls"][0]["approval"]
    assert card["needs_second_person"] is True
    assert card["call_rule"] == {"id": str(made.pk), "name": "Careful"}
    assert card["can_remember"] is False
    assert listed(chat, "member") == []
    (item,) = listed(chat, "admin")
    assert item.tool_call.pk == call.pk
    assert item.conversation is None
    assert item.asked_by == chat.tenant.people["member"]
    for role in ("member", "auditor"):
        with pytest.raises(PermissionDenied):
            decide_as_second_person(
                call=call, decision=Decision.APPROVED, actor=chat.tenant.actor(role)
            )
    chat.model.say("gone")
    decide_as_second_person(
        call=call, decision=Decision.APPROVED, actor=chat.tenant.actor("admin"), note="fine"
    )
    chat.watching.turn("completed")
    assert chat.server.calls == [("destroy", {"what": "the world"})]
    assert listed(chat, "admin") == []
    (granted,) = entries(chat, "approval.granted")
    assert granted.rule == f"call_rule.{made.pk}"
    assert granted.approval is not None
    assert granted.approval["approver"] == chat.tenant.people["admin"].email
    assert granted.approval["requester"] == chat.tenant.people["member"].email


def test_a_second_person_refuses_with_a_reason(chat: Chat) -> None:
    """REL-1092: the model reads it."""
    second_person_rule(chat)
    call = waiting_call(chat)
    chat.model.say("all right")
    decide_as_second_person(
        call=call,
        decision=Decision.REFUSED,
        actor=chat.tenant.actor("owner"),
        note="not this quarter",
    )
    chat.watching.turn("completed")
    assert chat.server.calls == []
    assert "not this quarter" in chat.model.requests[1]["messages"][-1]["content"]


def test_whoever_asked_can_take_it_back(chat: Chat) -> None:
    """REL-1092."""
    second_person_rule(chat)
    call = waiting_call(chat)
    chat.model.say("all right")
    decide(call=call, decision=Decision.REFUSED, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.server.calls == []
    with pytest.raises(Conflict):
        decide_as_second_person(
            call=call, decision=Decision.APPROVED, actor=chat.tenant.actor("admin")
        )


@pytest.mark.both_engines
def test_of_two_second_persons_one_decides(chat: Chat) -> None:
    """SEC-547, REL-10: the call runs at most once."""
    second_person_rule(chat)
    call = waiting_call(chat)
    chat.model.say("done")

    def attempt(role: str) -> bool:
        try:
            decide_as_second_person(
                call=call, decision=Decision.APPROVED, actor=chat.tenant.actor(role)
            )
        except DomainError:
            return False
        return True

    with Threads(4) as pool:
        results = list(pool.map(attempt, ["admin", "owner"] * 2))
    assert sum(results) == 1
    chat.watching.turn("completed")
    assert len(chat.server.calls) == 1


def test_a_rule_made_after_ones_own_yes_counts(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-547: the gate asks again whether a second person is needed, and one's own yes is none."""
    call = waiting_call(chat)
    second_person_rule(chat)
    # As if the rule came between the yes and the call.
    monkeypatch.setattr(approvals, "_goes_to_second_person", lambda *given: False)
    chat.model.say("all right")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.server.calls == []
    (refused,) = entries(chat, "tool_call.refused")
    assert (refused.refused_by, refused.rule) == ("approval", "approval.second_person")


def test_a_second_person_who_lost_the_role_lets_nothing_run(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-547: the gate looks at the role of this moment."""
    second_person_rule(chat)
    call = waiting_call(chat)

    def demote_first(turn: Turn, changes: Changes) -> None:
        members = Membership.objects.for_workspace(turn.workspace_id)
        members.filter(user=chat.tenant.people["admin"]).update(role="member")
        queue_again(turn, changes)

    monkeypatch.setattr(approvals, "queue_again", demote_first)
    chat.model.say("all right")
    decide_as_second_person(call=call, decision=Decision.APPROVED, actor=chat.tenant.actor("admin"))
    chat.watching.turn("completed")
    assert chat.server.calls == []
    (refused,) = entries(chat, "tool_call.refused")
    assert refused.rule == "approval.second_person"


def test_waiting_for_a_second_person_runs_out(chat: Chat) -> None:
    """REL-1092: as every approval; and it survives a restart."""
    second_person_rule(chat)
    call = waiting_call(chat)
    runtime.shutdown(3.0)
    assert [one.tool_call.pk for one in listed(chat, "owner")] == [call.pk]
    past = database_now() - timedelta(seconds=1)
    ToolCall.objects.for_workspace(call.workspace_id).update(approval_expires_at=past)
    chat.model.say("too late")
    chat.watching = Watching(chat.conversation.pk)
    expire_approvals()
    chat.watching.turn("completed")
    assert chat.server.calls == []
    assert listed(chat, "owner") == []


def test_always_passes_no_rule(chat: Chat) -> None:
    """SEC-540: what was allowed for good asks again once a rule wants it; and cannot be allowed for good then."""
    call = waiting_call(chat)
    chat.model.say("done")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor, remember=Remember.EVERYWHERE)
    chat.watching.turn("completed")
    rule(chat)
    chat.watching.forget()
    call = waiting_call(chat)
    with pytest.raises(Conflict):
        decide(
            call=call, decision=Decision.APPROVED, actor=chat.actor, remember=Remember.EVERYWHERE
        )
    assert len(chat.server.calls) == 1


def test_a_rule_lets_run_what_would_ask(chat: Chat) -> None:
    """REL-1090: only with these arguments, and only while the rule is on."""
    made = rule(
        chat, effect="auto", conditions=[{"path": "what", "operator": "equals", "value": "a crumb"}]
    )
    chat.model.call(("counting__destroy", {"what": "a crumb"}))
    chat.model.say("done")
    chat.ask()
    assert chat.server.calls == [("destroy", {"what": "a crumb"})]
    (requested,) = entries(chat, "tool_call.requested")
    assert requested.rule == f"call_rule.{made.pk}"


def test_people_can_have_a_tool_ask_each_time(chat: Chat) -> None:
    """SEC-544: also where a rule or an administrator lets it run; others are not asked."""
    rule(chat, effect="auto")
    ask_always(tool=tool_of(chat.row, "destroy"), actor=chat.actor)
    call = waiting_call(chat)
    assert call.approval_rule == "user.ask"
    assert chat.server.calls == []


def test_a_tool_is_made_to_ask_over_rest_and_on_its_page_taken_back(chat: Chat) -> None:
    """SEC-544: a changed tool still asks; others have their own."""
    tool = tool_of(chat.row, "echo")
    browser = Client()
    browser.force_login(chat.tenant.people["member"])
    slug = chat.tenant.workspace.slug
    options: dict[str, Any] = {
        "content_type": "application/json",
        "headers": {"X-Workspace": slug},
    }
    made = browser.post("/api/tool-permissions/", {"tool_id": str(tool.pk)}, **options)
    assert made.status_code == 201, made.content
    assert (made.json()["asks_always"], made.json()["is_current"]) == (True, True)
    McpTool.objects.for_workspace(chat.tenant.workspace).update(
        definition_hash="f" * 64, approved_hash="f" * 64
    )
    call = waiting_call(chat, "echo", text="hi")
    assert call.approval_rule == "user.ask"
    page = f"/w/{slug}/tool-permissions/"
    assert "asks each time" in browser.get(page).content.decode()
    assert browser.post(page, {"permission": made.json()["id"]}).status_code == 302
    chat.model.say("done")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    chat.watching.forget()
    chat.model.call(("counting__echo", {"text": "again"}))
    chat.model.say("done")
    chat.ask()
    assert [name for name, _ in chat.server.calls] == ["echo", "echo"]


@pytest.mark.parametrize("role", ["admin", "owner"])
def test_admins_decide_over_rest(chat: Chat, role: str) -> None:
    """REL-1092: found among what waits, with who asked; afterwards the call is not theirs to see."""
    second_person_rule(chat)
    call = waiting_call(chat)
    api = Client()
    api.force_login(chat.tenant.people[role])
    headers = {"X-Workspace": chat.tenant.workspace.slug}
    (item,) = api.get("/api/waiting/", headers=headers).json()
    assert item["tool_call"]["arguments"] == {"what": "the world"}
    assert item["asked_by"] == chat.tenant.people["member"].display_name
    assert (item["conversation"], item["message_id"]) == (None, None)
    chat.model.say("gone")
    path = f"/api/tool-calls/{call.pk}/"
    assert api.get(path, headers=headers).status_code == 200
    answer = api.post(
        f"{path}decide/",
        {"decision": "approve"},
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 200, answer.content
    chat.watching.turn("completed")
    assert api.get(path, headers=headers).status_code == 404


def test_members_cannot_decide_for_others_over_rest(chat: Chat) -> None:
    """SEC-547: an auditor who manages nothing does not even find the call."""
    second_person_rule(chat)
    call = waiting_call(chat)
    api = Client()
    api.force_login(chat.tenant.people["auditor"])
    headers = {"X-Workspace": chat.tenant.workspace.slug}
    answer = api.post(
        f"/api/tool-calls/{call.pk}/decide/",
        {"decision": "approve"},
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 404


def offered_to(chat: Chat, request: int = 0) -> set[str]:
    """The tools of the server that the model was told of."""
    tools = chat.model.requests[request].get("tools", [])
    names = {one["function"]["name"] for one in tools}
    return {name for name in names if name.startswith("counting__")}


def test_a_tool_that_a_rule_blocks_is_not_offered_and_a_call_of_it_is_refused(chat: Chat) -> None:
    """REL-1112: the others are; the model reads the rule's reason, and the log has the refusal."""
    made = rule(chat, effect="deny", tools=["destr*"])
    chat.model.call(("counting__destroy", {"what": "the world"}))
    chat.model.say("all right")
    chat.ask()
    assert "counting__echo" in offered_to(chat)
    assert "counting__destroy" not in offered_to(chat)
    assert chat.server.calls == []
    assert "Careful" in chat.model.requests[1]["messages"][-1]["content"]
    (refused,) = entries(chat, "tool_call.refused")
    assert (refused.tool_name, refused.rule) == ("destroy", f"call_rule.{made.pk}")


def test_a_tool_is_offered_to_those_whom_no_rule_blocks(chat: Chat) -> None:
    """REL-1112: a rule for another role, with conditions, or switched off takes nothing away."""
    rule(chat, effect="deny", roles=["admin"])
    rule(
        chat,
        effect="deny",
        name="Only moons",
        conditions=[{"path": "what", "operator": "equals", "value": "a moon"}],
    )
    rule(chat, effect="deny", name="Off", is_enabled=False)
    chat.model.say("hello")
    chat.ask()
    assert "counting__destroy" in offered_to(chat)


def test_a_blocked_tool_is_not_looked_up_and_a_call_of_it_is_refused(chat: Chat) -> None:
    """REL-1112: for buds that look tools up; a rule that is made meanwhile holds in the next step."""
    chat.bud.mcp_config = {**chat.bud.mcp_config, "tool_exposure": "on_demand"}
    chat.bud.save(update_fields=["mcp_config"])
    chat.model.call(("mcp_list_tools", {"query": "destroy"}))
    chat.model.say("it is there")
    chat.ask()
    assert '"destroy"' in chat.model.requests[1]["messages"][-1]["content"]
    rule(chat, effect="deny", tools=["destroy"])
    chat.model.call(("mcp_list_tools", {"query": "destroy"}))
    meant = {"server": "counting", "tool": "destroy", "arguments": {"what": "it"}}
    chat.model.call(("mcp_call_tool", meant))
    chat.model.say("all right")
    chat.ask()
    looked_up, refused = (one["messages"][-1]["content"] for one in chat.model.requests[-2:])
    assert '"destroy"' not in looked_up
    assert "The call rule “Careful” blocks this call." in refused
    assert chat.server.calls == []


def test_the_tool_picker_says_which_rule_blocks_a_tool(chat: Chat) -> None:
    """REL-1112: it stands there, switched off, with the reason; for whom the rule is not made it is on."""
    rule(chat, effect="deny", tools=["destroy"], roles=["member"])
    browser = Client()
    browser.force_login(chat.tenant.people["member"])
    answer = browser.get(
        f"/api/conversations/{chat.conversation.pk}/servers/",
        headers={"X-Workspace": chat.tenant.workspace.slug},
    )
    [server] = answer.json()["servers"]
    values = {one["name"]: (one["is_on"], one["blocked_reason"]) for one in server["tools"]}
    assert values["destroy"] == (
        False,
        "The call rule “Careful” blocks this tool. It costs money.",
    )
    assert values["echo"] == (True, "")


@pytest.mark.parametrize("effect", ["confirm", "deny"])
def test_running_a_lost_call_again_passes_no_rule(
    chat: Chat, unknown: ToolCall, effect: str
) -> None:
    """SEC-553: nobody's word from before counts: it waits for a second person, or is refused."""
    rule(chat, effect=effect, **({"approver": "second_person"} if effect == "confirm" else {}))
    chat.model.say("done")
    again = resolve_call(call=unknown, resolution=Resolution.RUN_AGAIN, actor=chat.actor)
    if effect == "deny":
        chat.watching.turn("completed")
        assert chat.server.calls == []
        assert "Careful" in chat.model.requests[-1]["messages"][-1]["content"]
        return
    chat.watching.turn("waiting_for_approval")
    waits = chat.calls()[-1]
    assert (waits.pk, waits.needs_second_person) == (again.pk, True)
    with pytest.raises(PermissionDenied):
        decide(call=waits, decision=Decision.APPROVED, actor=chat.actor)
    assert chat.server.calls == []
    decide_as_second_person(
        call=waits, decision=Decision.APPROVED, actor=chat.tenant.actor("admin")
    )
    chat.watching.turn("completed")
    assert len(chat.server.calls) == 1
