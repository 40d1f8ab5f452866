"""Call rules in words, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_servers.client.decisions import Effect, RuleDecision
from mcp_servers.models import Approver, CallRule
from mcp_servers.models.rule_conditions import OPERATOR_WORDS, Condition, read_conditions
from workspaces.actors import Role
from workspaces.errors import InvalidInput

_MOST_SHOWN: Final = 5
ROLE_WORDS: Final = {
    Role.OWNER.value: gettext_lazy("owners"),
    Role.ADMIN.value: gettext_lazy("admins"),
    Role.MEMBER.value: gettext_lazy("members"),
}


def effect_words(rule: CallRule) -> str:
    """What the rule does."""
    if rule.effect == Effect.DENY:
        return _("Blocks")
    if rule.effect == Effect.AUTO:
        return _("Lets run")
    if rule.approver == Approver.SECOND_PERSON:
        return _("Asks a second person")
    return _("Asks first")


def effect_tone(rule: CallRule) -> str:
    """How its tag looks."""
    return {Effect.DENY.value: "bad", Effect.CONFIRM.value: "warn"}.get(rule.effect, "ok")


def words_of(rule: CallRule) -> str:
    """The rule in a sentence, without its name and reason."""
    sentence = _("%(effect)s: %(tools)s on %(servers)s, for %(roles)s") % {
        "effect": effect_words(rule),
        "tools": _listed(rule.tools, every=_("all tools")),
        "servers": _listed(rule.servers, every=_("all servers")),
        "roles": _roles(rule.roles),
    }
    conditions = conditions_in_words(rule)
    if conditions:
        sentence = _("%(rule)s, if %(conditions)s") % {"rule": sentence, "conditions": conditions}
    return sentence


def conditions_in_words(rule: CallRule) -> str:
    """What has to hold; empty: nothing."""
    try:
        conditions = read_conditions(rule.conditions)
    except InvalidInput:
        return _("what is stored can be read again")
    parts = [_condition(one) for one in conditions]
    return _(" and ").join(parts)


def reason_in_words(ruled: RuleDecision | None) -> str:
    """What the rules say of a call."""
    return ruled.reason if ruled else _("No call rule is about this call.")


def _condition(one: Condition) -> str:
    condition = f"“{one.path}” {_(OPERATOR_WORDS[one.operator])}"
    return f"{condition} “{one.value}”" if one.value else condition


def _listed(names: object, *, every: str) -> str:
    if not isinstance(names, list) or not names:
        return "?"
    if "*" in names:
        return every
    shown = ", ".join(str(one) for one in names[:_MOST_SHOWN])
    left = len(names) - _MOST_SHOWN
    return _("%(names)s and %(left)s more") % {"names": shown, "left": left} if left > 0 else shown


def _roles(roles: Sequence[str]) -> str:
    roles_in_words = [str(ROLE_WORDS[one]) for one in ROLE_WORDS if one in roles]
    return _(" and ").join(roles_in_words) if roles_in_words else _("everybody")
