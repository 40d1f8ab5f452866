"""Buds over REST."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.offers import ServersOutput, servers_json
from chat.models import Bud
from chat.providers.choosing import model_of
from chat.services.buds import create_bud, offered_servers, update_bud
from chat.toolset import resolve_toolset
from chat.values import ToolProtocol
from mcp_servers.models import McpServer
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class BudModelOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    is_demo = serializers.BooleanField()


class BudServerOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    status = serializers.CharField()


class BudOutput(serializers.ModelSerializer[Bud]):
    """A bud; its servers are those of this workspace that it names."""

    model = serializers.SerializerMethodField()
    servers = serializers.SerializerMethodField()
    provider_id = serializers.UUIDField(allow_null=True)
    starter_prompts = serializers.ListField(child=serializers.CharField())
    mcp_config = serializers.DictField()
    parameters = serializers.DictField()
    problems = serializers.SerializerMethodField(
        help_text="Why some of its servers or tools cannot be used now, in sentences; null in lists."
    )

    class Meta:
        model = Bud
        fields = (
            "id",
            "slug",
            "name",
            "description",
            "avatar",
            "system_prompt",
            "starter_prompts",
            "provider_id",
            "model",
            "parameters",
            "mcp_config",
            "servers",
            "problems",
            "tool_protocol",
            "makes_artifacts",
            "takes_all_tools",
            "is_model_fixed",
            "is_archived",
            "created_at",
            "updated_at",
        )
        read_only_fields = fields

    @extend_schema_field(BudModelOutput)
    def get_model(self, bud: Bud) -> dict[str, Any]:
        name, is_demo = model_of(bud)
        return {"name": name, "provider_id": bud.provider_id, "is_demo": is_demo}

    @extend_schema_field(serializers.ListField(child=serializers.CharField(), allow_null=True))
    def get_problems(self, bud: Bud) -> list[str] | None:
        if getattr(self.context.get("view"), "action", "list") == "list":
            return None  # each bud costs several queries
        return list(resolve_toolset(bud, None).notices)

    @extend_schema_field(BudServerOutput(many=True))
    def get_servers(self, bud: Bud) -> list[dict[str, Any]]:
        known: dict[str, McpServer] = self.context.get("servers", {})
        named = [str(server_id) for server_id in bud.mcp_config.get("servers", [])]
        return [
            {
                "id": server_id,
                "name": known[server_id].name,
                "status": known[server_id].state.status,
            }
            for server_id in named
            if server_id in known
        ]


class BudInput(serializers.Serializer[Any]):
    """What a bud is made of. `model` is the model's name; empty: the provider's own."""

    slug = serializers.SlugField(max_length=60)
    name = serializers.CharField(max_length=100)
    description = serializers.CharField(max_length=300, allow_blank=True, required=False)
    avatar = serializers.CharField(max_length=8, required=False)
    system_prompt = serializers.CharField(max_length=50_000, allow_blank=True, required=False)
    provider_id = serializers.UUIDField(allow_null=True, required=False)
    model_name = serializers.CharField(
        max_length=200, allow_blank=True, required=False, source="model"
    )
    parameters = serializers.DictField(required=False)
    starter_prompts = serializers.ListField(
        child=serializers.CharField(max_length=300), max_length=12, required=False
    )
    mcp_config = serializers.DictField(
        required=False,
        help_text="servers, available_tools, disabled_tools, tool_choice, tool_choice_every_step, tool_exposure: `all`"
        " puts every tool into the prompt; `on_demand` lets the model look tools up and call them by name, which keeps"
        " the prompt of a bud with many servers small.",
    )
    tool_protocol = serializers.ChoiceField(
        [protocol.value for protocol in ToolProtocol],
        required=False,
        help_text="How the model is told of tools; `auto` finds out.",
    )
    makes_artifacts = serializers.BooleanField(
        required=False, help_text="Offers tools to create and change files of the conversation."
    )
    takes_all_tools = serializers.BooleanField(
        required=False,
        help_text="Uses, besides the servers it names, every server of the workspace that is meant for all buds. New buds do, unless you say no.",
    )
    is_model_fixed = serializers.BooleanField(
        required=False, help_text="People cannot choose another model in their chats."
    )
    is_archived = serializers.BooleanField(required=False)


class BudFilters(RowFilterSet):
    is_archived = django_filters.BooleanFilter()
    search = django_filters.CharFilter(field_name="name", lookup_expr="icontains")


class BudViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Assistants of the workspace."""

    model = Bud
    scopes = Scopes(read="chat", write="buds:write")
    serializer_class = BudOutput
    filterset_class = BudFilters
    orderings: ClassVar[Any] = ("name", "-id", "created_at")

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        return super().get_queryset().select_related("provider")

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if not getattr(self, "swagger_fake_view", False) and self.request is not None:
            rows = offered_servers(self.workspace.pk)
            context["servers"] = {str(server.pk): server for server in rows}
        return context

    @extend_schema(responses=ServersOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def servers(self, request: Request, pk: str) -> Response:
        """The servers that the caller's conversations with this bud would use, and why."""
        bud = Bud.objects.for_workspace(self.workspace).select_related("workspace").fetch(pk)
        return Response(servers_json(bud, None, person=self.person, actor=self.actor))

    @extend_schema(request=BudInput, responses={201: BudOutput})
    def create(self, request: Request) -> Response:
        """Make a bud."""
        values = self.read(BudInput)
        provider_id = values.pop("provider_id", None)
        bud = create_bud(
            workspace_id=self.workspace.pk, actor=self.actor, values=values, provider_id=provider_id
        )
        return self.answer(bud, status=201)

    @extend_schema(request=BudInput, responses=BudOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change some of a bud's values; archive it with `is_archived`."""
        bud = self.get_object()
        values = self.read(BudInput, partial=True)
        has_provider = "provider_id" in values
        provider_id = values.pop("provider_id", None)
        bud = update_bud(
            bud=bud,
            actor=self.actor,
            values=values,
            provider_id=provider_id,
            has_provider=has_provider,
        )
        return self.answer(bud)
