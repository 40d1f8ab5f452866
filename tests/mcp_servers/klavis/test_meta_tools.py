"""Tools that run actions by name: policy, approvals, permissions and the log see the effective action."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.client.decisions import PolicyDecision
from mcp_servers.client.errors import ApprovalMissing, CallRefused
from mcp_servers.client.values import Effect, ToolAnnotations, ToolFacts
from mcp_servers.gate.admission import GatedCall
from mcp_servers.klavis.models import InstanceState, KlavisAccount, KlavisInstance
from mcp_servers.models import McpServer, McpTool
from mcp_servers.models.meta_tools import DISCOVERING, EffectiveAction, read_action, runs_actions
from mcp_servers.registry.consent import permissions, policy
from mcp_servers.registry.consent.approvals import grant_approval
from mcp_servers.registry.consent.call_policy import facts_of_call
from mcp_servers.registry.services.actions import remove_action_rule, set_action_rule
from tests.factories import Tenant
from tests.mcp_servers.factories import a_request, stored_tool
from workspaces.errors import Conflict, PermissionDenied

SEND = {"server_name": "gmail", "category_name": "messages", "action_name": "send"}
READS = ToolAnnotations(read_only=True, destructive=False, open_world=False)


def test_the_effective_action_is_read() -> None:
    """Ours: in either spelling, with or without a service and a category."""
    found = read_action("execute_action", SEND)
    assert found == EffectiveAction(service="gmail", category="messages", action="send")
    assert found.label == "gmail / messages / send"
    camel = {"serverName": "gmail", "categoryName": "messages", "actionName": " send "}
    assert read_action("execute_action", camel) == found
    bare = read_action("execute_action", {"action_name": "send"})
    assert bare is not None
    assert bare.label == "send"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action_name": ""},
        {"action_name": None},
        {"action_name": 7},
        {"action_name": ["send"]},
        {"action_name": "x" * 201},
        {"action_name": "se\u200bnd"},
        {"action_name": "send", "actionName": "delete"},
        {"action_name": "send", "server_name": {"a": 1}},
        {"action": "send"},
    ],
)
def test_what_cannot_be_told_for_certain_is_not_guessed(arguments: dict[str, Any]) -> None:
    """Ours."""
    assert read_action("execute_action", arguments) is None
    assert read_action("another_tool", SEND) is None


@pytest.mark.parametrize("spelling", ["SEND", " send ", "ｓｅｎｄ"])
def test_one_action_has_one_key(spelling: str) -> None:
    """Ours: a lenient reader over there must not find a way around a rule."""
    one = read_action("execute_action", SEND)
    other = read_action("execute_action", {**SEND, "action_name": spelling})
    assert one is not None
    assert other is not None
    assert one.key == other.key


def test_which_tools_run_actions() -> None:
    """Ours: the known one on any server; on hosted ones whatever else takes the name of an action."""
    named = {"properties": {"tool_name": {"type": "string"}}}
    assert runs_actions(hosted_by="klavis", tool_name="execute_action", input_schema={})
    assert runs_actions(hosted_by="klavis", tool_name="run_it", input_schema=named)
    assert not runs_actions(hosted_by="klavis", tool_name="gmail_send", input_schema={})
    for name in ("action_name", "actionName"):
        taken: dict[str, Any] = {"properties": {name: {"type": "string"}}}
        assert runs_actions(hosted_by="", tool_name="execute_action", input_schema=taken)
        assert not runs_actions(hosted_by="", tool_name="run_it", input_schema=taken)
    for schema in ({}, named, {"properties": ["action_name"]}):
        assert not runs_actions(hosted_by="", tool_name="execute_action", input_schema=schema)
    details: dict[str, Any] = {"properties": {"action_name": {}, "category_name": {}}}
    for name in DISCOVERING:
        assert not runs_actions(hosted_by="klavis", tool_name=name, input_schema=details)


def decided(**facts: Any) -> PolicyDecision:
    return policy.decide(
        ToolFacts(
            **{"is_indirect": True, "trusts_annotations": True, "annotations": READS, **facts}
        )
    )


@pytest.mark.parametrize(
    ("facts", "effect", "rule"),
    [
        ({}, Effect.CONFIRM, "action.unreadable"),
        ({"override": Effect.AUTO}, Effect.CONFIRM, "action.unreadable"),
        ({"action": "send"}, Effect.CONFIRM, "hints.action"),
        ({"action": "send", "override": Effect.AUTO}, Effect.CONFIRM, "hints.action"),
        ({"action": "send", "action_effect": Effect.AUTO}, Effect.AUTO, "action.auto"),
        ({"action": "send", "action_effect": Effect.CONFIRM}, Effect.CONFIRM, "action.confirm"),
        ({"action": "send", "action_effect": Effect.DENY}, Effect.DENY, "action.deny"),
        (
            {"action": "send", "action_effect": Effect.AUTO, "override": Effect.CONFIRM},
            Effect.CONFIRM,
            "tool.confirm",
        ),
        (
            {"action": "send", "action_effect": Effect.AUTO, "override": Effect.DENY},
            Effect.DENY,
            "tool.deny",
        ),
        (
            {"action": "send", "action_effect": Effect.AUTO, "has_read_untrusted": True},
            Effect.CONFIRM,
            "turn.untrusted_content",
        ),
        ({"is_indirect": False}, Effect.AUTO, "hints.read_only"),
    ],
)
def test_an_action_that_nobody_decided_about_asks(
    facts: dict[str, Any], effect: Effect, rule: str
) -> None:
    """Ours: whatever the meta-tool says of itself and whatever is set for it."""
    found = decided(**facts)
    assert (found.effect, found.rule) == (effect, rule)


def test_only_an_action_that_is_named_can_be_remembered() -> None:
    """Ours."""
    assert policy.may_remember(decided(action="send"))
    assert not policy.may_remember(decided())
    assert not policy.may_remember(decided(action="send", action_effect=Effect.CONFIRM))


@pytest.fixture
def meta(tenant: Tenant) -> McpTool:
    """A hosted server's meta-tool, of a server that is trusted in all it says."""
    server = McpServer.objects.create(
        workspace=tenant.workspace,
        name="strata",
        hosted_by="klavis",
        transport="streamable_http",
        trusts_annotations=True,
    )
    KlavisAccount.objects.create(workspace=tenant.workspace, api_key="k")
    KlavisInstance.objects.create(
        workspace=tenant.workspace,
        server=server,
        server_name="strata",
        server_url="https://strata.example.org/mcp/",
        state=InstanceState.READY,
    )
    return stored_tool(server, "execute_action", input_schema={"type": "object"})


def test_an_address_that_somebody_entered_is_no_way_around(tenant: Tenant) -> None:
    """Ours: the same tool of an ordinary server asks for each action, and the log names it."""
    server = McpServer.objects.create(
        workspace=tenant.workspace, name="mine", url="https://x.example.org/"
    )
    schema = {"type": "object", "properties": {"action_name": {"type": "string"}}}
    tool = stored_tool(server, "execute_action", input_schema=schema, approval_override="auto")
    asking = a_request(tenant, tool, SEND, can_ask=True)
    with pytest.raises(ApprovalMissing):
        GatedCall(asking).admit()
    actor = tenant.actor("member")
    permissions.remember_permission(tool=tool, actor=actor, arguments=SEND)
    other = {**SEND, "action_name": "delete"}
    for arguments, expected in ((SEND, True), (other, False)):
        is_remembered = permissions.is_remembered(
            tool=tool,
            facts=facts_of_call(tool, arguments),
            user_id=actor.user_id,
            conversation_id=None,
            arguments=arguments,
        )
        assert is_remembered is expected
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action="approval.requested")
    assert entry.details["effective_action"] == "gmail / messages / send"


def rule(tenant: Tenant, tool: McpTool, effect: Effect, **names: str) -> Any:
    return set_action_rule(
        server=tool.server,
        **{"service": "gmail", "category": "messages", "action": "send", **names},
        effect=effect,
        actor=tenant.actor("admin"),
    )


def effect_of(tool: McpTool, **arguments: Any) -> Effect:
    return policy.decide(facts_of_call(tool, {**SEND, **arguments})).effect


def test_rules_on_actions(tenant: Tenant, meta: McpTool) -> None:
    """Ours: letting run needs the exact action, refusing reaches all that could be it."""
    rule(tenant, meta, Effect.AUTO)
    assert effect_of(meta) is Effect.AUTO
    assert effect_of(meta, category_name="drafts") is Effect.CONFIRM
    assert effect_of(meta, server_name="") is Effect.CONFIRM
    denied = rule(tenant, meta, Effect.DENY)
    assert effect_of(meta) is Effect.DENY
    assert effect_of(meta, category_name="made up") is Effect.DENY
    assert effect_of(meta, server_name="") is Effect.DENY
    assert effect_of(meta, action_name="SEND") is Effect.DENY
    assert effect_of(meta, server_name="slack") is Effect.CONFIRM
    assert effect_of(meta, action_name="search") is Effect.CONFIRM
    remove_action_rule(rule=denied, actor=tenant.actor("admin"))
    assert effect_of(meta) is Effect.CONFIRM


def test_who_may_set_them(tenant: Tenant, meta: McpTool) -> None:
    """Ours: those who manage the server; and nobody lets an action of their own server run by itself."""
    with pytest.raises(PermissionDenied):
        set_action_rule(
            server=meta.server,
            service="",
            category="",
            action="send",
            effect=Effect.DENY,
            actor=tenant.actor("member"),
        )
    plain = McpServer.objects.create(workspace=tenant.workspace, name="plain", url="https://x/")
    with pytest.raises(Conflict):
        rule(tenant, stored_tool(plain), Effect.DENY)
    tenant.allow_personal_servers()
    meta.server.scope, meta.server.owner = "personal", tenant.member
    meta.server.workspace = tenant.workspace
    meta.server.save()
    own: dict[str, Any] = {"server": meta.server, "service": "", "category": "", "action": "send"}
    with pytest.raises(PermissionDenied):
        set_action_rule(**own, effect=Effect.AUTO, actor=tenant.actor("member"))
    set_action_rule(**own, effect=Effect.DENY, actor=tenant.actor("member"))


def test_the_gate_and_the_log_name_the_action(tenant: Tenant, meta: McpTool) -> None:
    """Ours: the question, the refusal and the approval are about what is really done."""
    asking = a_request(tenant, meta, SEND, can_ask=True)
    with pytest.raises(ApprovalMissing) as caught:
        GatedCall(asking).admit()
    assert "gmail / messages / send" in caught.value.decision.reason
    rule(tenant, meta, Effect.DENY)
    with pytest.raises(CallRefused) as refused:
        GatedCall(a_request(tenant, meta, {**SEND, "category_name": "other"})).admit()
    assert refused.value.rule == "action.deny"
    grant_approval(
        call_id=asking.call_id,
        tool=meta,
        arguments=SEND,
        requester=tenant.actor("member"),
        approver=tenant.actor("member"),
        expires_at=timezone.now() + timedelta(minutes=5),
    )
    entries = {
        entry.action: entry.details.get("effective_action")
        for entry in AuditEntry.objects.for_workspace(tenant.workspace)
        if entry.tool_name == "execute_action"
    }
    assert entries == {
        "approval.requested": "gmail / messages / send",
        "tool_call.refused": "gmail / other / send",
        "approval.granted": "gmail / messages / send",
    }


def test_an_always_is_about_one_action(tenant: Tenant, meta: McpTool) -> None:
    """Ours: another action of the same tool asks."""
    actor = tenant.actor("member")
    kept = permissions.remember_permission(tool=meta, actor=actor, arguments=SEND)
    assert kept.action_label == "gmail / messages / send"

    def remembered(**arguments: str) -> bool:
        given = {**SEND, **arguments}
        return permissions.is_remembered(
            tool=meta,
            facts=facts_of_call(meta, given),
            user_id=actor.user_id,
            conversation_id=None,
            arguments=given,
        )

    assert remembered()
    assert not remembered(action_name="delete")
    assert not remembered(category_name="drafts")
    assert not remembered(action_name="")
    with pytest.raises(Conflict):
        permissions.remember_permission(tool=meta, actor=actor, arguments={})
    rule(tenant, meta, Effect.CONFIRM)
    assert not remembered()
