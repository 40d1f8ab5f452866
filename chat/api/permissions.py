"""A person's own "always" for tools, over REST: look, take back."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import ServerName, ToolRef
from chat.services.permissions import titles_of, tool_title, why_lapsed
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.models import McpTool, ToolPermission
from mcp_servers.registry.consent.permissions import ask_always, forget_permission
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class ConversationRef(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)


class ToolPermissionOutput(serializers.Serializer[Any]):
    """A tool that runs for the caller without asking, or asks them each time."""

    id = serializers.UUIDField()
    server = ServerName()
    tool = ToolRef()
    conversation = ConversationRef(allow_null=True, help_text="None: in all of the caller's.")
    created_at = serializers.DateTimeField()
    asks_always = serializers.BooleanField(
        help_text="The opposite: the tool asks the caller each time."
    )
    is_current = serializers.BooleanField(help_text="False: it has lapsed, and the tool asks.")
    reason = serializers.CharField(allow_blank=True)

    def to_representation(self, instance: ToolPermission) -> dict[str, Any]:
        tool, here = instance.tool, instance.conversation_id
        reason = why_lapsed(instance)
        titles = self.context.get("titles", {})
        return {
            "id": str(instance.pk),
            "server": {"id": str(tool.server_id), "name": tool.server.name},
            "tool": {
                "id": str(tool.pk),
                "name": show_hidden(tool.name),
                "title": tool_title(instance),
            },
            "conversation": {"id": str(here), "title": titles.get(here, "")} if here else None,
            "created_at": instance.created_at.isoformat(),
            "asks_always": instance.asks_always,
            "is_current": not reason,
            "reason": reason,
        }


class AskAlwaysInput(serializers.Serializer[Any]):
    """A tool that shall ask the caller each time."""

    tool_id = serializers.UUIDField()


class ToolPermissionViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What the caller has allowed once and for all, and what asks them each time."""

    model = ToolPermission
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ToolPermissionOutput
    orderings: ClassVar[Any] = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        rows = super().rows().select_related("tool__server", "workspace")
        return rows.filter(user=self.person)

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if not getattr(self, "swagger_fake_view", False) and self.request is not None:
            wanted = self.get_queryset().values_list("conversation_id", flat=True)
            context["titles"] = titles_of(self.workspace, self.person, wanted)
        return context

    @extend_schema(request=AskAlwaysInput, responses={201: ToolPermissionOutput})
    def create(self, request: Request) -> Response:
        """Have a tool ask the caller each time, in all their chats, whatever the workspace lets run."""
        tools = McpTool.objects.for_workspace(self.workspace).visible_to(self.person)
        tool = tools.select_related("server", "workspace").fetch(
            self.read(AskAlwaysInput)["tool_id"]
        )
        return self.answer(ask_always(tool=tool, actor=self.actor), status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take it back: from the next call on, the workspace's policy decides."""
        forget_permission(permission=self.get_object(), actor=self.actor)
        return Response(status=204)
