"""Call rules over REST."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import django_filters
from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.client.values import Effect
from mcp_servers.models import Approver, CallRule
from mcp_servers.models.rule_conditions import LONGEST_TEXT, MOST_CONDITIONS, Operator
from mcp_servers.registry.consent.rule_words import reason_in_words, words_of
from mcp_servers.registry.services.call_rules import (
    LONGEST_NAME,
    MOST_NAMES,
    CallRuleDraft,
    change_call_rule,
    create_call_rule,
    delete_call_rule,
    draft_of,
)
from mcp_servers.registry.services.trying_rules import try_call_rules
from workspaces.actors import Role
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.holding import hold
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet

_NAMES = "Names; * and ? stand for any letters."
_ROLES = [(one.value, one.value) for one in Role]


def _names(**options: Any) -> serializers.ListField:
    child = serializers.CharField(max_length=LONGEST_NAME)
    return serializers.ListField(child=child, max_length=MOST_NAMES, help_text=_NAMES, **options)


class ConditionField(serializers.Serializer[Any]):
    """A condition on one value of the arguments."""

    path = serializers.CharField(
        max_length=200,
        help_text="A dotted name such as `issue.labels`, or a JSON pointer such as `/to/0`. `*` stands for each entry.",
    )
    operator = serializers.ChoiceField([(one.value, one.value) for one in Operator])
    value = serializers.CharField(
        max_length=LONGEST_TEXT,
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="None for `present` and `absent`; a number for `greater` and `less`.",
    )


class CallRuleOutput(serializers.ModelSerializer[CallRule]):
    """A rule of the workspace on tool calls."""

    servers = serializers.ListField(child=serializers.CharField(), read_only=True)
    tools = serializers.ListField(child=serializers.CharField(), read_only=True)
    roles = serializers.ListField(child=serializers.CharField(), read_only=True)
    conditions = ConditionField(many=True, read_only=True)
    words = serializers.SerializerMethodField(help_text="The rule in a sentence.")

    class Meta:
        model = CallRule
        fields = (
            *("id", "name", "reason", "is_enabled", "servers", "tools", "roles"),
            *("conditions", "effect", "approver", "words", "created_at", "updated_at"),
        )
        read_only_fields = fields

    def get_words(self, rule: CallRule) -> str:
        return words_of(rule)


class CallRuleInput(serializers.Serializer[Any]):
    """What a rule says."""

    name = serializers.CharField(max_length=100)
    reason = serializers.CharField(
        max_length=500,
        required=False,
        allow_blank=True,
        help_text="People read it on the card, and the model when a call is refused.",
    )
    is_enabled = serializers.BooleanField(required=False)
    servers = _names()
    tools = _names()
    roles = serializers.ListField(
        child=serializers.ChoiceField(_ROLES),
        required=False,
        help_text="Of whom it holds for. Empty: everybody.",
    )
    conditions = serializers.ListField(
        child=ConditionField(),
        required=False,
        max_length=MOST_CONDITIONS,
        help_text="All have to hold.",
    )
    effect = serializers.ChoiceField(
        [(one.value, one.value) for one in Effect],
        help_text="Among rules, deny wins over confirm, and confirm over auto.",
    )
    approver = serializers.ChoiceField(
        Approver.choices,
        required=False,
        help_text="With `confirm`: whether a second person has to allow the call, an admin or owner.",
    )


class TryRulesInput(serializers.Serializer[Any]):
    """A call that nobody makes."""

    server = serializers.CharField(max_length=LONGEST_NAME)
    tool = serializers.CharField(max_length=256)
    # What a tool would take; nothing of it becomes a program's argument.
    arguments = serializers.DictField(required=False)
    role = serializers.ChoiceField(_ROLES, required=False, help_text="Of who asks.")


class RuleNameOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="rule_id")
    name = serializers.CharField(source="rule_name")


class TriedRulesOutput(serializers.Serializer[Any]):
    """What the rules say of a call."""

    effect = serializers.ChoiceField(
        [(one.value, one.value) for one in Effect],
        allow_null=True,
        help_text="Null: no rule is about it.",
    )
    rule = RuleNameOutput(allow_null=True, help_text="The one that decides.")
    needs_second_person = serializers.BooleanField()
    reason = serializers.CharField(help_text="In words.")


class CallRuleFilters(RowFilterSet):
    """What a list of rules may be narrowed by."""

    is_enabled = TruthFilter()
    effect = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Effect])


class CallRuleViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Rules of the workspace on tool calls. For those who manage servers."""

    model = CallRule
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = CallRuleOutput
    filterset_class = CallRuleFilters
    orderings: ClassVar[Any] = ("name", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """None for those who do not manage servers."""
        rows = super().rows()
        # A token that only reads shows what its person may change.
        person = replace(self.actor, scopes=None)
        may_see = has_permission(person, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        return rows if may_see else rows.none()

    @extend_schema(request=CallRuleInput, responses={201: CallRuleOutput})
    def create(self, request: Request) -> Response:
        """Make a rule. It holds from the next call on."""
        draft = CallRuleDraft(**self.read(CallRuleInput))
        rule = create_call_rule(workspace=self.workspace, draft=draft, actor=self.actor)
        return self.answer(rule, status=201)

    @extend_schema(request=CallRuleInput, responses=CallRuleOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what is given of a rule; switch it on or off."""
        given, rule = self.read(CallRuleInput, partial=True), self.get_object()
        with transaction.atomic():
            hold(rule)
            draft = replace(draft_of(rule), **given)
            return self.answer(change_call_rule(rule=rule, draft=draft, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a rule; the log keeps what it said."""
        delete_call_rule(rule=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=TryRulesInput, responses=TriedRulesOutput, operation_id="call_rules_try")
    @action(detail=False, methods=["post"], url_path="try")
    def try_out(self, request: Request) -> Response:
        """Say which rule decides about a call, without making it."""
        require(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        values = self.read(TryRulesInput)
        ruled = try_call_rules(
            workspace_id=self.workspace.pk,
            server=values["server"],
            tool=values["tool"],
            arguments=values.get("arguments", {}),
            role=values.get("role", Role.MEMBER.value),
            actor=self.actor,
        )
        return Response(
            TriedRulesOutput(
                {
                    "effect": ruled.effect if ruled else None,
                    "rule": ruled,
                    "needs_second_person": bool(ruled and ruled.needs_second_person),
                    "reason": reason_in_words(ruled),
                }
            ).data
        )
