"""Rules on actions of hosted servers over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import django_filters
from django.db.models import Q
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from mcp_servers.client.values import Effect
from mcp_servers.models import ActionRule, McpServer
from mcp_servers.registry.rights import require_to_manage
from mcp_servers.registry.services.actions import remove_action_rule, set_action_rule
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet

_EFFECTS = [one.value for one in Effect]
_LONGEST = 200


class ActionRuleOutput(serializers.ModelSerializer[ActionRule]):
    """What is to happen when a tool of a hosted server runs an action by name."""

    server_id = serializers.UUIDField(read_only=True)
    effect = serializers.ChoiceField(_EFFECTS, read_only=True)

    class Meta:
        model = ActionRule
        fields = ("id", "server_id", "service", "category", "action", "effect", "created_at")
        read_only_fields = fields


class ActionRuleInput(serializers.Serializer[Any]):
    """A rule as somebody wants it."""

    server_id = serializers.UUIDField(help_text="A server that a provider hosts.")
    action = serializers.CharField(
        max_length=_LONGEST, help_text="As the tool names it, such as `send_email`."
    )
    service = serializers.CharField(
        max_length=_LONGEST, required=False, allow_blank=True, default=""
    )
    category = serializers.CharField(
        max_length=_LONGEST, required=False, allow_blank=True, default=""
    )
    effect = serializers.ChoiceField(
        _EFFECTS,
        help_text="`confirm` asks each time, `deny` refuses, `auto` runs by itself. The last one only on servers of the"
        " workspace.",
    )


class ActionRuleFilters(RowFilterSet):
    """What a list of rules may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    effect = django_filters.ChoiceFilter(choices=[(one, one) for one in _EFFECTS])


class ActionRuleViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Rules on actions, for whoever manages the server that they are of."""

    model = ActionRule
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = ActionRuleOutput
    filterset_class = ActionRuleFilters
    orderings: ClassVar[Any] = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of one's own servers; for those who manage servers also of the workspace's."""
        rows = super().rows()
        rows = rows.select_related("server__workspace")
        manages = has_permission(
            self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
        )
        own = Q(server__owner=self.person)
        return rows.filter(own | Q(server__owner__isnull=True) if manages else own)

    @extend_schema(
        request=ActionRuleInput,
        responses={201: ActionRuleOutput},
        examples=[
            OpenApiExample(
                "Refuse an action",
                value={
                    "server_id": "0198c0de-0000-7000-8000-000000000001",
                    "service": "gmail",
                    "action": "send_email",
                    "effect": "deny",
                },
                request_only=True,
            )
        ],
    )
    def create(self, request: Request) -> Response:
        """Say what happens with an action. Another rule on the same action gives way to it."""
        values = self.read(ActionRuleInput)
        servers = McpServer.objects.for_workspace(self.workspace).visible_to(self.person)
        server = servers.select_related("workspace").fetch(values["server_id"])
        require_to_manage(self.actor, server)
        rule = set_action_rule(
            server=server,
            service=values["service"],
            category=values["category"],
            action=values["action"],
            effect=Effect(values["effect"]),
            actor=self.actor,
        )
        return self.answer(rule, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take a rule back. The action asks again."""
        remove_action_rule(rule=self.get_object(), actor=self.actor)
        return Response(status=204)
