"""The workspace's call rules: which of them decides about a call. Deny wins, then confirm, then auto.

A rule that cannot be checked blocks the call. Rules are read from the database for each call, in one statement, so a
change holds from the next call on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, Subquery

from mcp_servers.client.decisions import Effect, RuleDecision
from mcp_servers.models import Approver, CallRule
from mcp_servers.models.rule_conditions import read_conditions
from mcp_servers.registry.consent.call_policy import action_of
from mcp_servers.registry.consent.rule_matching import (
    AppliedRule,
    MatchedCall,
    PossibleNames,
    RuleUndecidable,
    holds,
    is_about,
)
from workspaces.actors import Role
from workspaces.errors import InvalidInput
from workspaces.models import Membership, User
from workspaces.words.texts import gettext_noop as _

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import McpTool
    from workspaces.actors import Actor

UNREADABLE: Final = _("what is stored of it cannot be read.")


@dataclass(frozen=True, slots=True)
class PersonRules:
    """The rules that are on, and the role by which they see a person."""

    rules: tuple[AppliedRule, ...] = ()
    role: str = ""

    def every_call(self, tool: McpTool) -> RuleDecision | None:
        """What they say of each call of this tool, whatever it is given; None: nothing, or that depends."""
        # Of a tool that runs actions by name, it depends on the action.
        if not self.rules or tool.facts().is_indirect:
            return None
        return decide_whatever_arguments(self.rules, matched_call(tool, {}, self.role))

    def why_blocked(self, tool: McpTool) -> str:
        """Why no call of this tool can run; "": one may."""
        ruled = self.every_call(tool)
        if ruled is None or ruled.effect is not Effect.DENY:
            return ""
        reason = next(rule.reason for rule in self.rules if rule.id == ruled.rule_id)
        sentence = _("The call rule “%(name)s” blocks this tool.") % {"name": ruled.rule_name}
        return f"{sentence} {reason}".strip()


def are_on(workspace_id: UUID) -> Exists:
    """Whether a workspace has rules that are on, for a query that asks for something else."""
    return Exists(_enabled(workspace_id).order_by().values("pk"))


def enabled_rules(workspace_id: UUID) -> tuple[AppliedRule, ...]:
    """The rules that are on. One statement."""
    return tuple(as_rule(row) for row in _enabled(workspace_id).order_by("id"))


def rules_for(workspace_id: UUID, user_id: UUID) -> PersonRules:
    """The rules that are on, as they see this person. One statement."""
    members = Membership.objects.for_workspace(workspace_id).filter(user_id=user_id).order_by()
    owners = User.objects.filter(pk=user_id, is_superuser=True).order_by()
    rows = list(
        _enabled(workspace_id)
        .annotate(role=Subquery(members.values("role")[:1]), is_superuser=Exists(owners))
        .order_by("id")
    )
    if not rows:
        return PersonRules()
    role = rows[0].role or (Role.OWNER.value if rows[0].is_superuser else "")
    return PersonRules(tuple(as_rule(row) for row in rows), role)


def _enabled(workspace_id: UUID) -> Any:
    return CallRule.objects.for_workspace(workspace_id).filter(is_enabled=True)


def as_rule(row: CallRule) -> AppliedRule:
    """A row as it is applied. What cannot be read of it is no error here: such a rule blocks."""
    known: dict[str, Any] = {"id": row.pk, "name": row.name, "reason": row.reason}
    try:
        conditions = read_conditions(row.conditions)
        effect = Effect(row.effect)
        approver = Approver(row.approver)
    except (InvalidInput, ValueError):
        return AppliedRule(**known, effect=Effect.DENY, fault=UNREADABLE)
    lists = (row.servers, row.tools, row.roles)
    if not all(_is_texts(one) for one in lists) or not row.servers or not row.tools:
        return AppliedRule(**known, effect=Effect.DENY, fault=UNREADABLE)
    return AppliedRule(
        **known,
        effect=effect,
        servers=tuple(row.servers),
        tools=tuple(row.tools),
        roles=tuple(row.roles),
        conditions=conditions,
        asks_second_person=approver is Approver.SECOND_PERSON and effect is Effect.CONFIRM,
    )


def matched_call(tool: McpTool, arguments: Mapping[str, Any], role: str) -> MatchedCall:
    """A call as rules see it: of a tool that runs actions by name, what it really does."""
    server = tool.server
    is_personal = server.owner_id is not None
    if not tool.facts().is_indirect:
        return MatchedCall(
            server=PossibleNames(known=(server.name,)),
            tool=PossibleNames(known=(tool.name,)),
            is_personal=is_personal,
            role=role,
            arguments=arguments,
        )
    action = action_of(tool, arguments)
    services = (action.service,) if action is not None and action.service else ()
    return MatchedCall(
        # Which service an action belongs to may be left out of the call.
        server=PossibleNames(known=(server.name, *services), is_all=bool(services)),
        tool=PossibleNames(
            known=(action.action, tool.name) if action is not None else (tool.name,),
            is_all=action is not None,
        ),
        is_indirect=True,
        is_personal=is_personal,
        role=role,
        arguments=arguments,
    )


def role_of(actor: Actor) -> str:
    """The role that rules go by: of a platform owner who is no member, an owner's."""
    if actor.role is not None:
        return actor.role.value
    return Role.OWNER.value if actor.is_superuser else ""


def decide(rules: Iterable[AppliedRule], call: MatchedCall) -> RuleDecision | None:
    """What the rules say of this call; None: nothing."""
    found: dict[tuple[Effect, bool], AppliedRule] = {}
    for rule in rules:
        try:
            is_met = holds(rule, call)
        except RuleUndecidable as fault:
            return _failed(rule, str(fault))
        if is_met:
            found.setdefault((rule.effect, rule.asks_second_person), rule)
    return _strictest(found)


def decide_whatever_arguments(
    rules: Iterable[AppliedRule], call: MatchedCall
) -> RuleDecision | None:
    """What the rules say of every call of this tool, whatever it is given; None: that depends."""
    found: dict[tuple[Effect, bool], AppliedRule] = {}
    for rule in rules:
        if is_about(rule, call) and (rule.fault or not rule.conditions):
            found.setdefault((rule.effect, rule.asks_second_person), rule)
    return _strictest(found)


def _strictest(found: Mapping[tuple[Effect, bool], AppliedRule]) -> RuleDecision | None:
    for key in (
        (Effect.DENY, False),
        (Effect.CONFIRM, True),
        (Effect.CONFIRM, False),
        (Effect.AUTO, False),
    ):
        if key in found:
            return _decision(found[key])
    return None


def _decision(rule: AppliedRule) -> RuleDecision:
    if rule.effect is Effect.DENY:
        sentence = _("The call rule “%(name)s” blocks this call.")
    elif rule.asks_second_person:
        sentence = _(
            "The call rule “%(name)s” asks for a second person: an admin or owner has to allow this call."
        )
    elif rule.effect is Effect.CONFIRM:
        sentence = _("The call rule “%(name)s” asks first.")
    else:
        sentence = _("The call rule “%(name)s” lets this call run without asking.")
    return RuleDecision(
        effect=rule.effect,
        rule_id=rule.id,
        rule_name=rule.name,
        reason=f"{sentence % {'name': rule.name}} {rule.reason}".strip(),
        needs_second_person=rule.asks_second_person,
    )


def _failed(rule: AppliedRule, fault: str) -> RuleDecision:
    sentence = _(
        "The call rule “%(name)s” could not be checked, so this call is blocked: %(fault)s"
    ) % {
        "name": rule.name,
        "fault": fault,
    }
    return RuleDecision(effect=Effect.DENY, rule_id=rule.id, rule_name=rule.name, reason=sentence)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
