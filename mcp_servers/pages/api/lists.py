"""The platform's servers, and lists of servers in and out, over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.models import GlobalServer, McpServer
from mcp_servers.pages.api.common import TextMapField, WhereUsedInput, where_used
from mcp_servers.pages.api.servers import ServerOutput
from mcp_servers.registry.files.file_format import MAX_FILE_BYTES
from mcp_servers.registry.scopes import lists, platform
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.errors import NotFound
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from rest_framework.request import Request


class OfferOutput(serializers.Serializer[Any]):
    """A server of the platform, as this workspace may know it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    transport = serializers.CharField()
    where = serializers.CharField()
    is_required = serializers.BooleanField()
    is_on = serializers.BooleanField()
    server_id = serializers.UUIDField(allow_null=True)
    problem = serializers.CharField()


class OnInput(serializers.Serializer[Any]):
    """On or off."""

    is_on = serializers.BooleanField()


class ListInput(serializers.Serializer[Any]):
    """A list of servers."""

    servers = serializers.CharField(
        max_length=MAX_FILE_BYTES, help_text="Text in the `mcpServers` format."
    )
    values = TextMapField(
        default=dict,
        help_text='What stands for variables: `{"TOKEN": "…"}` for `${TOKEN}`. Workspaces have no variables.',
    )


class ImportInput(ListInput, WhereUsedInput):
    """A list of servers, and where they are used."""


class PlannedOutput(serializers.Serializer[Any]):
    """What an import does with one entry. Secrets are named, never shown."""

    name = serializers.CharField()
    plan = serializers.ChoiceField(
        choices=[("add", "add"), ("ask", "ask"), ("refuse", "refuse")],
        help_text="`ask`: it is added once its variables have values.",
    )
    transport = serializers.CharField()
    where = serializers.CharField()
    reason = serializers.CharField()
    secrets = serializers.ListField(child=serializers.CharField())
    placeholders = serializers.ListField(child=serializers.CharField())


class ExportOutput(serializers.Serializer[Any]):
    """The workspace's servers, with variables' names where secrets stand."""

    mcpServers = serializers.DictField(child=serializers.DictField())  # noqa: N815  the format's own name


class GlobalServerViewSet(WorkspaceViewSet):
    """The platform's servers, of which a workspace switches on those it wants."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # a short list, given whole
    serializer_class = OfferOutput

    @extend_schema(responses=OfferOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """Every server that the platform's file names."""
        require(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        offers = platform.offers_for(self.workspace.pk)
        return Response([offer.as_json() for offer in offers])

    @extend_schema(request=OnInput, responses=OfferOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Switch one on or off for this workspace."""
        is_on = self.read(OnInput)["is_on"]
        known = GlobalServer.objects.filter(pk=pk).first()
        if known is None:
            raise NotFound
        change = platform.switch_on if is_on else platform.switch_off
        change(workspace_id=self.workspace.pk, global_server=known, actor=self.actor)
        offers = platform.offers_for(self.workspace.pk)
        shown = next((one for one in offers if one.server.pk == known.pk), None)
        if shown is None:
            raise NotFound
        return Response(shown.as_json())


class ServerListViewSet(WorkspaceViewSet):
    """Lists of servers in the format that desktop clients share."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # a short list, given whole
    serializer_class = ExportOutput

    @extend_schema(responses=ExportOutput, filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def export(self, request: Request) -> Response:
        """The workspace's own servers, without secrets."""
        return Response(lists.export_servers(workspace_id=self.workspace.pk, actor=self.actor))

    @extend_schema(request=ListInput, responses=PlannedOutput(many=True), filters=False)
    @action(detail=False, methods=["post"], pagination_class=None)
    def preview(self, request: Request) -> Response:
        """What an import would do; nothing is stored, started or connected to."""
        given = self.read(ListInput)
        planned = lists.preview_import(
            workspace_id=self.workspace.pk,
            text=given["servers"],
            values=given["values"],
            actor=self.actor,
        )
        return Response([one.as_json() for one in planned])

    @extend_schema(request=ImportInput, responses={201: ServerOutput(many=True)}, filters=False)
    def create(self, request: Request) -> Response:
        """Add what the preview says would be added, switched off."""
        values = self.read(ImportInput)
        added = lists.apply_import(
            workspace_id=self.workspace.pk,
            text=values["servers"],
            values=values["values"],
            where=where_used(values),
            actor=self.actor,
        )
        context = {"actor": self.actor}
        return Response(ServerOutput(added, many=True, context=context).data, status=201)
