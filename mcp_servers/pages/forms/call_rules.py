"""The forms of call rules: one rule, with a row for each condition, and the box to try rules out."""

from __future__ import annotations

import json
from typing import Any, Final

from django import forms
from django.db import models
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.values import Effect
from mcp_servers.models import Approver, CallRule
from mcp_servers.models.rule_conditions import (
    LONGEST_TEXT,
    MOST_CONDITIONS,
    OPERATOR_WORDS,
    Operator,
    read_conditions,
)
from mcp_servers.registry.consent.rule_words import conditions_in_words
from mcp_servers.registry.services.call_rules import CallRuleDraft
from workspaces.actors import Role
from workspaces.errors import InvalidInput
from workspaces.pages.seen_values import NoticesOthers, digest_of

_FREE_ROWS: Final = 2
_WITH_STARS: Final = {
    Operator.MATCHES: _("matches, with * and ?"),
    Operator.NOT_MATCHES: _("does not match, with * and ?"),
}
_OPERATORS: Final = [
    (one.value, _WITH_STARS.get(one, _(words))) for one, words in OPERATOR_WORDS.items()
]
_ROLES: Final = [
    (Role.MEMBER.value, _("Members")),
    (Role.ADMIN.value, _("Admins")),
    (Role.OWNER.value, _("Owners")),
]


class EffectChoice(models.TextChoices):
    """What a rule does, as a person chooses it."""

    CONFIRM = "confirm", _("Ask first: whoever asked allows or refuses each call")
    SECOND = "second", _("Ask a second person: an admin or owner who did not ask")
    DENY = "deny", _("Block the call")
    AUTO = "auto", _("Let the call run without asking")


def what_of(rule: CallRule) -> str:
    """What a rule does."""
    is_second = rule.effect == Effect.CONFIRM and rule.approver == Approver.SECOND_PERSON
    return EffectChoice.SECOND.value if is_second else rule.effect


class ConditionRow(forms.Form):
    """One condition; without a path it is none."""

    path = forms.CharField(
        label=_("Value of"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    operator = forms.ChoiceField(label=_("Comparison"), choices=_OPERATORS, required=False)
    value = forms.CharField(
        label=_("With"),
        required=False,
        max_length=LONGEST_TEXT,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Check the row as the service will."""
        given = super().clean() or {}
        if self.errors:
            return given
        if given.get("path"):
            try:
                read_conditions([given])
            except InvalidInput:
                self.add_error("value", _fault(given["operator"]))
        elif given.get("value"):
            self.add_error("path", _("Say which value of the arguments is compared."))
        return given


def _fault(operator: str) -> str:
    if operator in (Operator.PRESENT, Operator.ABSENT):
        return _now("This comparison needs no value. Leave it empty.")
    if operator in (Operator.GREATER, Operator.LESS):
        return _now("Enter a number.")
    return _now("Enter what it is compared with.")


class CallRuleForm(NoticesOthers, forms.Form):
    """One rule."""

    name = forms.CharField(label=_("Name"), max_length=100)
    what = forms.ChoiceField(
        label=_("What the rule does"), choices=EffectChoice.choices, widget=forms.RadioSelect
    )
    servers = forms.CharField(
        label=_("Servers"),
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_("Names, one on each line. * and ? stand for any letters; * alone for all."),
    )
    tools = forms.CharField(
        label=_("Tools"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_("Names, one on each line, such as delete_*. * alone stands for all."),
    )
    roles = forms.MultipleChoiceField(
        label=_("Who it holds for"),
        choices=_ROLES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Choose none for everybody."),
    )
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("People read it on the card, and the model when a call is refused."),
    )
    is_enabled = forms.BooleanField(label=_("On"), required=False)
    conditions = forms.Field(required=False, widget=forms.HiddenInput)
    """Stands for the rows, so that others' changes of them are noticed."""

    def __init__(self, *args: Any, rule: CallRule, given: dict[str, str], **options: Any) -> None:
        """Show the rule.

        Args:
            given: what the address proposes for a new one.
        """
        is_new = rule._state.adding
        options["initial"] = {
            "name": rule.name,
            "what": given.get("what") or EffectChoice.CONFIRM.value if is_new else what_of(rule),
            "servers": given.get("servers") or "*" if is_new else _lines(rule.servers),
            "tools": given.get("tools") or "*" if is_new else _lines(rule.tools),
            "roles": rule.roles,
            "reason": given.get("reason", "") if is_new else rule.reason,
            "is_enabled": rule.is_enabled,
            "conditions": _known_conditions(rule),
        }
        if is_new:
            options["initial"]["name"] = given.get("name", "")
        super().__init__(*args, **options)
        self._rule = rule
        conditions = _known_conditions(rule)
        if is_new and given.get("path"):
            conditions = [{name: given.get(name, "") for name in ("path", "operator", "value")}]
        self.rows = _rows(args[0] if args else None, conditions)

    def is_valid(self) -> bool:
        """Whether the rule and all its rows are."""
        rows = [row.is_valid() for row in self.rows]
        return super().is_valid() and all(rows)

    def _submitted(self, name: str) -> Any:
        return _sent(self.rows) if name == "conditions" else super()._submitted(name)

    def _is_untouched(self, name: str, seen: str) -> bool:
        if name == "conditions":
            return digest_of(_sent(self.rows)) == seen
        return super()._is_untouched(name, seen)

    def _show_theirs(self, name: str) -> None:
        if name == "conditions":
            self.rows = _rows(None, _known_conditions(self._rule))
        else:
            super()._show_theirs(name)

    def _in_words(self, name: str) -> str:
        if name == "conditions":
            return conditions_in_words(self._rule) or _now("nothing")
        return super()._in_words(name)

    def draft(self) -> CallRuleDraft:
        """What was entered, once it is valid."""
        given = self.cleaned_data
        is_second = given["what"] == EffectChoice.SECOND
        return CallRuleDraft(
            name=given["name"],
            effect=Effect.CONFIRM.value if is_second else given["what"],
            approver=(Approver.SECOND_PERSON if is_second else Approver.REQUESTER).value,
            servers=given["servers"].splitlines(),
            tools=given["tools"].splitlines(),
            roles=given["roles"],
            reason=given["reason"],
            is_enabled=given["is_enabled"],
            conditions=[row.cleaned_data for row in self.rows if row.cleaned_data.get("path")],
        )


class TryRulesForm(forms.Form):
    """A call that nobody makes."""

    server = forms.CharField(
        label=_("Server"),
        max_length=200,
        widget=forms.TextInput(attrs={"list": "rule-servers", "autocomplete": "off"}),
    )
    tool = forms.CharField(
        label=_("Tool"),
        max_length=256,
        widget=forms.TextInput(attrs={"list": "rule-tools", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("Asked by"), choices=_ROLES)
    arguments = forms.CharField(
        label=_("Arguments"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_("One on each line, such as to: ada@example.org or issue.title: A bug"),
    )

    def clean_arguments(self) -> dict[str, Any]:
        """Read the lines."""
        found: dict[str, Any] = {}
        for line in self.cleaned_data["arguments"].splitlines():
            if not line.strip():
                continue
            path, colon, value = line.partition(":")
            if not colon or not path.strip():
                raise forms.ValidationError(_("Write each line as a name, a colon and a value."))
            place = found
            *outer, last = path.strip().split(".")
            for name in outer:
                inner = place.setdefault(name, {})
                if not isinstance(inner, dict):
                    raise forms.ValidationError(_("One name stands for two things here."))
                place = inner
            place[last] = _value(value.strip())
        return found


def _value(text: str) -> Any:
    """Numbers, lists and the like as JSON has them; everything else is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _rows(data: Any, conditions: list[dict[str, str]]) -> list[ConditionRow]:
    """Give the rows that were sent, or one for each condition and some that are free."""
    if data is None:
        count = min(len(conditions) + _FREE_ROWS, MOST_CONDITIONS)
    else:
        count = sum(f"condition-{number}-path" in data for number in range(MOST_CONDITIONS))
    return [
        ConditionRow(
            data,
            prefix=f"condition-{number}",
            initial=conditions[number] if number < len(conditions) else None,
        )
        for number in range(count)
    ]


def _sent(rows: list[ConditionRow]) -> list[dict[str, str]]:
    """Give the conditions that were sent, as they would be stored."""
    sent = [{name: str(row[name].data or "") for name in row.fields} for row in rows]
    return [{**one, "path": one["path"].strip()} for one in sent if one["path"].strip()]


def _lines(names: object) -> str:
    return "\n".join(str(one) for one in names) if isinstance(names, list) else ""


def _known_conditions(rule: CallRule) -> list[dict[str, str]]:
    try:
        return [one.model_dump(mode="json") for one in read_conditions(rule.conditions)]
    except InvalidInput:
        return []
