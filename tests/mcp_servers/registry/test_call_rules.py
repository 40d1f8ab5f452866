"""Call rules: which of them decides, and what they never let by."""

from __future__ import annotations

from typing import Any

import pytest
from uuid_utils.compat import uuid7

from audit.models import AuditEntry
from mcp_servers.client.decisions import PolicyDecision, RuleDecision
from mcp_servers.client.values import Effect, ToolAnnotations, ToolFacts
from mcp_servers.models import CallRule
from mcp_servers.models.rule_conditions import Condition, Operator
from mcp_servers.registry.consent import policy
from mcp_servers.registry.consent.call_rules import as_rule, decide
from mcp_servers.registry.consent.rule_matching import AppliedRule, MatchedCall, PossibleNames
from mcp_servers.registry.services import ServerDraft, update_server
from mcp_servers.registry.services.call_rules import (
    CallRuleDraft,
    change_call_rule,
    create_call_rule,
    delete_call_rule,
    draft_of,
    switch_call_rule,
)
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server
from workspaces.errors import InvalidInput, PermissionDenied


def a_rule(effect: Effect = Effect.DENY, **fields: Any) -> AppliedRule:
    """A rule about every call, unless it says otherwise."""
    known = {"id": uuid7(), "name": str(effect), "servers": ("*",), "tools": ("*",)}
    return AppliedRule(**{**known, "effect": effect, **fields})


def a_call(arguments: dict[str, Any] | None = None, **fields: Any) -> MatchedCall:
    return MatchedCall(
        **{
            "server": PossibleNames(known=("github",)),
            "tool": PossibleNames(known=("create_issue",)),
            "role": "member",
            "arguments": arguments or {},
            **fields,
        }
    )


def effect_of(*rules: AppliedRule, call: MatchedCall | None = None) -> Effect | None:
    ruled = decide(rules, call or a_call())
    return ruled.effect if ruled else None


def when(path: str, operator: str, value: str = "") -> tuple[Condition, ...]:
    return (Condition(path=path, operator=Operator(operator), value=value),)


def test_deny_wins_then_confirm_then_auto() -> None:
    """SEC-540: whatever the order."""
    auto, confirm, deny = (a_rule(one) for one in (Effect.AUTO, Effect.CONFIRM, Effect.DENY))
    second = a_rule(Effect.CONFIRM, asks_second_person=True)
    assert effect_of(auto, confirm, deny) is Effect.DENY
    assert effect_of(deny, confirm, auto) is Effect.DENY
    assert effect_of(auto, confirm) is Effect.CONFIRM
    assert effect_of(auto) is Effect.AUTO
    assert effect_of() is None
    ruled = decide([confirm, second], a_call())
    assert ruled is not None
    assert ruled.needs_second_person


def test_a_rule_that_cannot_be_checked_blocks_and_says_so() -> None:
    """SEC-541: also one that lets run, and one whose row is damaged."""
    rule = a_rule(Effect.AUTO, name="Small sums", conditions=when("sum", "less", "100"))
    assert effect_of(rule, call=a_call({"sum": 5})) is Effect.AUTO
    ruled = decide([rule], a_call({"sum": "about five"}))
    assert ruled is not None
    assert ruled.effect is Effect.DENY
    assert "Small sums" in ruled.reason
    assert "“sum” is not a number" in ruled.reason
    damages: tuple[dict[str, Any], ...] = (
        {"conditions": [{"path": "x", "operator": "sounds like"}]},
        {"conditions": "x"},
        {"servers": []},
        {"tools": [5]},
        {"effect": "perhaps"},
    )
    for damage in damages:
        fields = {"name": "r", "servers": ["a"], "tools": ["b"], "effect": "auto", **damage}
        assert effect_of(as_rule(CallRule(**fields))) is Effect.DENY, damage


@pytest.mark.parametrize(
    ("fields", "is_met"),
    [
        ({"servers": ("github",)}, True),
        ({"servers": ("git*",)}, True),
        ({"servers": ("GitHub",)}, True),
        ({"servers": ("gitlab",)}, False),
        ({"tools": ("create-*",)}, True),
        ({"tools": ("delete_*", "create_?ssue")}, True),
        ({"tools": ("[a-z]*",)}, False),
        ({"roles": ("member",)}, True),
        ({"roles": ("admin", "owner")}, False),
    ],
)
def test_rules_name_servers_tools_and_roles(fields: dict[str, Any], is_met: bool) -> None:
    """REL-1090: by name, or with * and ?."""
    assert (effect_of(a_rule(**fields)) is Effect.DENY) is is_met


ISSUE = {
    "repo": "acme/Site",
    "labels": ["bug", "urgent"],
    "sum": 1200,
    "is_public": True,
    "author": {"name": "Ada", "mail.address": "ada@acme.test"},
    "to": [{"mail": "a@acme.test"}, {"mail": "b@evil.test"}],
    "empty": [],
    "nothing": None,
}


@pytest.mark.parametrize(
    ("path", "operator", "value", "is_met"),
    [
        ("repo", "equals", "acme/site", True),
        ("repo", "not_equals", "acme/site", True),
        ("repo", "not_equals", "acme/Site", False),
        ("repo", "starts_with", "ACME/", True),
        ("repo", "ends_with", "/blog", False),
        ("repo", "contains", "me/s", True),
        ("repo", "matches", "acme/*", True),
        ("repo", "not_matches", "acme/*", False),
        ("labels", "contains", "urgent", True),
        ("labels", "equals", "bug", True),
        ("labels.1", "equals", "urgent", True),
        ("labels.*", "equals", "urgent", True),
        ("/labels/0", "equals", "bug", True),
        ("/author/mail.address", "ends_with", "@acme.test", True),
        ("author", "contains", "ada", True),
        ("to.mail", "not_matches", "*@acme.test", True),
        ("sum", "greater", "1000", True),
        ("sum", "less", "1000", False),
        ("sum", "equals", "1200.0", True),
        ("is_public", "equals", "true", True),
        ("missing", "equals", "x", False),
        ("missing", "not_equals", "x", True),
        ("missing", "absent", "", True),
        ("nothing", "present", "", False),
        ("repo", "present", "", True),
        ("empty", "not_contains", "x", True),
    ],
)
def test_conditions_of_rules_that_block(path: str, operator: str, value: str, is_met: bool) -> None:
    """REL-1090: each operator, by dotted name or JSON pointer. What leaves room for doubt is read strictly."""
    rule = a_rule(conditions=when(path, operator, value))
    assert (effect_of(rule, call=a_call(ISSUE)) is Effect.DENY) is is_met


@pytest.mark.parametrize(
    ("path", "operator", "value", "is_met"),
    [
        ("repo", "equals", "acme/site", False),
        ("repo", "equals", "acme/Site", True),
        ("repo", "not_equals", "ACME/SITE", False),
        ("missing", "not_equals", "x", False),
        ("to.mail", "ends_with", "@acme.test", False),
        ("to.0.mail", "ends_with", "@acme.test", True),
        ("labels", "not_contains", "urgent", False),
        ("empty", "contains", "x", False),
    ],
)
def test_conditions_of_rules_that_let_run_are_read_narrowly(
    path: str, operator: str, value: str, is_met: bool
) -> None:
    """SEC-542: all values have to fit, letter by letter, and have to be there."""
    rule = a_rule(Effect.AUTO, conditions=when(path, operator, value))
    assert (effect_of(rule, call=a_call(ISSUE)) is Effect.AUTO) is is_met


def test_all_conditions_have_to_hold() -> None:
    """REL-1090."""
    both = when("repo", "starts_with", "acme/") + when("sum", "greater", "5000")
    assert effect_of(a_rule(conditions=both), call=a_call(ISSUE)) is None


def test_rules_see_what_a_meta_tool_really_does() -> None:
    """SEC-543: its action and service, and what is handed on to the action; what cannot be told is blocked."""
    deny = a_rule(servers=("github",), tools=("delete_repo",))
    runs: dict[str, Any] = {
        "is_indirect": True,
        "server": PossibleNames(known=("strata", "github")),
    }
    delete = PossibleNames(known=("delete-repo", "execute_action"))
    assert effect_of(deny, call=a_call(tool=delete, **runs)) is Effect.DENY
    other = PossibleNames(known=("list_repos", "execute_action"))
    assert effect_of(deny, call=a_call(tool=other, **runs)) is None
    unclear = PossibleNames(known=("execute_action",), is_all=False)
    assert effect_of(deny, call=a_call(tool=unclear, **runs)) is Effect.DENY
    auto = a_rule(Effect.AUTO)
    assert effect_of(auto, call=a_call(tool=delete, **runs)) is None
    named = a_rule(Effect.AUTO, tools=("list_*",))
    assert effect_of(named, call=a_call(tool=other, **runs)) is Effect.AUTO
    inner = a_rule(conditions=when("owner", "equals", "acme"))
    for body in ({"owner": "acme"}, '{"owner": "acme"}'):
        assert effect_of(inner, call=a_call({"body": body}, tool=other, **runs)) is Effect.DENY
    broken = a_call({"body": '{"owner": '}, tool=other, **runs)
    ruled = decide([inner], broken)
    assert ruled is not None
    assert "cannot be read" in ruled.reason


def test_nobody_names_their_own_server_into_a_rule_that_lets_run() -> None:
    """SEC-542."""
    call = a_call(is_personal=True)
    assert effect_of(a_rule(Effect.AUTO), call=call) is None
    assert effect_of(a_rule(Effect.CONFIRM), call=call) is Effect.CONFIRM


def ruled(effect: Effect) -> RuleDecision:
    return RuleDecision(effect=effect, rule_id=uuid7(), rule_name="A", reason="because")


def with_rule(facts: ToolFacts, effect: Effect) -> PolicyDecision:
    return policy.apply_rule(policy.decide(facts), facts, ruled(effect))


def test_a_rule_loosens_only_what_is_asked_as_a_matter_of_course() -> None:
    """SEC-540: not an administrator's word about the tool, quarantine, an unreadable action, or content from outside."""
    writes = ToolFacts(annotations=ToolAnnotations(read_only=False))
    assert with_rule(writes, Effect.AUTO).effect is Effect.AUTO
    for facts, effect in (
        (ToolFacts(override=Effect.DENY), Effect.DENY),
        (ToolFacts(is_quarantined=True), Effect.DENY),
        (ToolFacts(is_enabled=False), Effect.DENY),
        (ToolFacts(override=Effect.CONFIRM), Effect.CONFIRM),
        (ToolFacts(is_indirect=True), Effect.CONFIRM),
        (ToolFacts(has_read_untrusted=True), Effect.CONFIRM),
    ):
        assert with_rule(facts, Effect.AUTO).effect is effect, facts


def test_a_rule_tightens_everything() -> None:
    """SEC-540: also what an administrator lets run; and no “always” of a person passes it."""
    trusted = ToolFacts(override=Effect.AUTO)
    for effect in (Effect.CONFIRM, Effect.DENY):
        decision = with_rule(trusted, effect)
        assert decision.effect is effect
        assert decision.rule.startswith("call_rule.")
        assert policy.relax(decision, trusted, is_remembered=True) == decision
        assert not policy.may_remember(decision)


def test_people_can_be_stricter_than_policy() -> None:
    """SEC-544."""
    reads = ToolFacts(override=Effect.AUTO)
    decision = policy.tighten(policy.decide(reads), asks_always=True)
    assert (decision.effect, decision.rule) == (Effect.CONFIRM, "user.ask")
    denied = policy.decide(ToolFacts(override=Effect.DENY))
    assert policy.tighten(denied, asks_always=True) == denied


# Rows


def a_draft(**fields: Any) -> CallRuleDraft:
    return CallRuleDraft(
        **{
            "name": "No deletes",
            "effect": "deny",
            "servers": ["*"],
            "tools": ["delete_*"],
            **fields,
        }
    )


@pytest.mark.django_db
def test_admins_make_change_switch_and_remove_rules(tenant: Tenant) -> None:
    """REL-1091: each change is in the log, field by field."""
    workspace, admin = tenant.workspace, tenant.actor("admin")
    rule = create_call_rule(workspace=workspace, draft=a_draft(), actor=admin)
    changed = CallRuleDraft(
        **{
            **{name: getattr(draft_of(rule), name) for name in ("name", "effect", "servers")},
            "tools": ["delete_*", "drop_*"],
        }
    )
    change_call_rule(rule=rule, draft=changed, actor=admin)
    switch_call_rule(rule=rule, is_enabled=False, actor=admin)
    delete_call_rule(rule=rule, actor=admin)
    entries = AuditEntry.objects.for_workspace(workspace).filter(action="config.changed")
    listed = [one.details for one in entries.order_by("pk")]
    assert [one["verb"] for one in listed[-4:]] == ["created", "changed", "changed", "deleted"]
    assert listed[-3]["after"] == {"tools": ["delete_*", "drop_*"]}
    assert listed[-2]["after"] == {"is_enabled": False}
    assert not CallRule.objects.for_workspace(workspace).exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"effect": "maybe"}, "effect"),
        ({"servers": [" "]}, "servers"),
        ({"tools": []}, "tools"),
        ({"roles": ["boss"]}, "roles"),
        ({"approver": "the cat"}, "approver"),
        ({"conditions": [{"path": "", "operator": "equals", "value": "x"}]}, "conditions"),
        ({"conditions": [{"path": "a", "operator": "greater", "value": "nan"}]}, "conditions"),
        ({"conditions": [{"path": "a", "operator": "equals", "value": ""}]}, "conditions"),
        ({"conditions": [{"path": "a", "operator": "present", "value": "x"}]}, "conditions"),
    ],
)
def test_bad_rules_get_an_error_at_the_field(
    tenant: Tenant, fields: dict[str, Any], where: str
) -> None:
    """REL-1091."""
    with pytest.raises(InvalidInput) as caught:
        create_call_rule(
            workspace=tenant.workspace, draft=a_draft(**fields), actor=tenant.actor("admin")
        )
    assert where in caught.value.fields


@pytest.mark.django_db
def test_rules_follow_a_server_that_gets_another_name(tenant: Tenant) -> None:
    """SEC-545: a new name is no way around a rule, and a freed one is no way into another."""
    workspace, admin = tenant.workspace, tenant.actor("admin")
    server = http_server(tenant, "https://drive.example.org/mcp", name="files")
    deny = create_call_rule(
        workspace=workspace, draft=a_draft(servers=["files", "mail"]), actor=admin
    )
    auto = create_call_rule(
        workspace=workspace,
        draft=a_draft(name="Free", effect="auto", servers=["files"]),
        actor=admin,
    )
    draft = ServerDraft(name="archive", transport=server.transport, url=server.url)
    update_server(server=server, draft=draft, actor=admin)
    deny.refresh_from_db()
    auto.refresh_from_db()
    assert deny.servers == ["files", "mail", "archive"]
    assert auto.servers == ["archive"]


@pytest.mark.django_db
def test_members_make_no_rules(tenant: Tenant) -> None:
    """SEC-545."""
    with pytest.raises(PermissionDenied):
        create_call_rule(workspace=tenant.workspace, draft=a_draft(), actor=tenant.actor("member"))
