"""Alert rules over REST."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit.alerts.services import (
    MOST_ADDRESSES,
    AlertRuleDraft,
    add_recommended,
    create_rule,
    delete_rule,
    preview_rule,
    switch_rule,
    update_rule,
)
from audit.models import AlertRule
from audit.models.alerts import MOST_WINDOW_MINUTES
from audit.reviews.stored_filters import LONGEST
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.delivery.mails import public_url
from workspaces.holding import hold
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_CONDITIONS = AlertRule.Condition.values


class RuleInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    condition = serializers.ChoiceField(_CONDITIONS)
    threshold = serializers.IntegerField(
        min_value=1, max_value=100_000, help_text="For an error rate: in per cent."
    )
    window_minutes = serializers.IntegerField(min_value=1, max_value=MOST_WINDOW_MINUTES)
    least_calls = serializers.IntegerField(min_value=1, max_value=100_000, required=False)
    server_name = serializers.CharField(max_length=200, allow_blank=True, required=False)
    tool_name = serializers.CharField(max_length=256, allow_blank=True, required=False)
    query = serializers.CharField(
        max_length=LONGEST,
        allow_blank=True,
        required=False,
        help_text="Filters, as people type them or as the page's address has them, without a time.",
    )
    remind_hours = serializers.IntegerField(
        min_value=0, max_value=24 * 30, required=False, help_text="0: never."
    )
    tells_bell = serializers.BooleanField(required=False)
    emails = serializers.ListField(
        child=serializers.CharField(max_length=254), max_length=MOST_ADDRESSES, required=False
    )
    webhook_url = serializers.CharField(max_length=2048, allow_blank=True, required=False)


class RuleChanges(RuleInput):
    is_active = serializers.BooleanField(required=False)


class RuleOutput(serializers.ModelSerializer[AlertRule]):
    """What is watched, and who is told. The webhook's secret is not shown again."""

    condition = serializers.ChoiceField(_CONDITIONS)
    emails = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = AlertRule
        fields: ClassVar[Any] = [
            "id",
            *(field.name for field in fields(AlertRuleDraft)),
            "is_active",
            "created_at",
        ]


class RuleSecretOutput(serializers.Serializer[Any]):
    """The rule, and where its webhook is new the secret that signs what it sends: shown this once."""

    rule = RuleOutput()
    secret = serializers.CharField(allow_null=True)


class RulePreviewOutput(serializers.Serializer[Any]):
    """What such a rule counts now, whether there would be an alert, and the page of what is counted."""

    value = serializers.FloatField()
    threshold = serializers.IntegerField()
    would_alert = serializers.BooleanField()
    log_url = serializers.CharField()


class RulesAddedOutput(serializers.Serializer[Any]):
    added = serializers.IntegerField()


class AlertRuleViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What the workspace watches for."""

    model = AlertRule
    scopes = Scopes(read="workspace:write", write="workspace:write")
    serializer_class = RuleOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)
        return super().rows()

    @extend_schema(request=RuleInput, responses={201: RuleSecretOutput})
    def create(self, request: Request) -> Response:
        """Watch for something from now on."""
        draft = AlertRuleDraft(**self.read(RuleInput))
        rule, secret = create_rule(workspace_id=self.workspace.pk, actor=self.actor, draft=draft)
        return Response(RuleSecretOutput({"rule": rule, "secret": secret or None}).data, status=201)

    @extend_schema(request=RuleChanges, responses=RuleSecretOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change it, or switch it on or off."""
        values = self.read(RuleChanges, partial=True)
        rule: AlertRule = self.get_object()
        is_active = values.pop("is_active", None)
        secret = ""
        with transaction.atomic():
            hold(rule)
            if values:
                now = {field.name: getattr(rule, field.name) for field in fields(AlertRuleDraft)}
                draft = AlertRuleDraft(**(now | values))
                secret = update_rule(rule=rule, actor=self.actor, draft=draft)
            if is_active is not None:
                switch_rule(rule=rule, actor=self.actor, is_active=is_active)
        return Response(RuleSecretOutput({"rule": rule, "secret": secret or None}).data)

    @extend_schema(
        summary="Preview an alert rule", request=RuleInput, responses={200: RulePreviewOutput}
    )
    @action(detail=False, methods=["post"], pagination_class=None)
    def preview(self, request: Request) -> Response:
        """Count as such a rule would, now. Nothing is kept, and nobody is told."""
        draft = AlertRuleDraft(**self.read(RuleInput))
        shown = preview_rule(workspace=self.workspace, actor=self.actor, draft=draft)
        values = {
            "value": shown.value,
            "threshold": draft.threshold,
            "would_alert": shown.is_over,
            "log_url": public_url(shown.log_path),
        }
        return Response(RulePreviewOutput(values).data)

    @extend_schema(
        summary="Add the recommended alert rules", request=None, responses=RulesAddedOutput
    )
    @action(detail=False, methods=["post"])
    def recommended(self, request: Request) -> Response:
        """Add those whose kind is not watched yet."""
        require(self.actor, Permission.MANAGE_WORKSPACE, workspace_id=self.workspace.pk)
        added = add_recommended(workspace_id=self.workspace.pk, actor=self.actor)
        return Response(RulesAddedOutput({"added": added}).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Watch for it no longer. What it found stays in the log."""
        delete_rule(rule=self.get_object(), actor=self.actor)
        return Response(status=204)
