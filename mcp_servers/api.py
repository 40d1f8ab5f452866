"""Servers and tools over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers import services, tester
from mcp_servers.models import (
    ApprovalOverride,
    McpServer,
    McpTool,
    ServerStatus,
    StdioProgram,
    Transport,
)
from mcp_servers.models.servers import MAX_NAME_LENGTH, AuthType
from mcp_servers.outbound import MAX_URL_LENGTH
from mcp_servers.services import ServerDraft
from mcp_servers.values import Outcome, Protocol
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet

_PROGRAM_WORDS = frozenset({"command", "args", "argv", "arguments", "cwd", "executable", "shell"})


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses what it does not know, so that a typing error or a forbidden field is never silently dropped."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the body.

        Raises:
            PermissionDenied: a field would name a program; programs come from the platform's catalogue alone.
            ValidationError: any other unknown field.
        """
        if isinstance(data, dict):
            unknown = {str(name) for name in data} - set(self.fields)
            if unknown & _PROGRAM_WORDS:
                raise PermissionDenied("Programs are picked from the platform's catalogue.")
            if unknown:
                raise serializers.ValidationError(
                    {name[:100]: ["Unknown field."] for name in unknown}
                )
        return super().to_internal_value(data)


class TextMapField(serializers.DictField):
    """Names to texts."""

    child = serializers.CharField(max_length=8192, allow_blank=True, trim_whitespace=False)


class ServerOutput(serializers.ModelSerializer[McpServer]):
    """A server without anything secret."""

    program = serializers.SlugField(
        source="program.slug", default=None, read_only=True, allow_null=True
    )
    url = serializers.SerializerMethodField()
    has_headers = serializers.SerializerMethodField()
    has_env = serializers.SerializerMethodField()
    has_credentials = serializers.SerializerMethodField()
    status_reason = serializers.SerializerMethodField()
    parameters = serializers.DictField(read_only=True)
    connection_config = serializers.DictField(read_only=True)
    server_info = serializers.DictField(read_only=True)
    capabilities = serializers.DictField(read_only=True)

    class Meta:
        model = McpServer
        fields = (
            *("id", "name", "transport", "protocol", "url", "program", "parameters"),
            *("has_headers", "has_env", "auth_type", "has_credentials", "connection_config"),
            *("is_active", "trusts_annotations", "allows_new_tools"),
            *("status", "status_reason", "latency_ms", "consecutive_failures"),
            *("last_connected_at", "last_checked_at", "tools_listed_at"),
            *("protocol_revision", "server_info", "capabilities", "created_at", "updated_at"),
        )
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_url(self, server: McpServer) -> str:
        """The whole URL for those who may change it; a query may hold what others should not see."""
        if server.transport == Transport.STDIO:
            return ""
        return server.url if self.context.get("can_manage") else server.target_label

    @extend_schema_field(serializers.CharField())
    def get_status_reason(self, server: McpServer) -> str:
        """What is wrong; the words of the server's program only for those who may change it."""
        reason = server.status_reason
        return reason if self.context.get("can_manage") else reason.partition("\n")[0]

    def get_has_headers(self, server: McpServer) -> bool:
        """Whether request headers are stored."""
        return bool(server.headers)

    def get_has_env(self, server: McpServer) -> bool:
        """Whether variables are stored."""
        return bool(server.env)

    def get_has_credentials(self, server: McpServer) -> bool:
        """Whether credentials are stored."""
        return bool(server.auth_config)


class ServerInput(StrictSerializer):
    """A server as somebody wants it. Secrets are written here and never read back."""

    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    transport = serializers.ChoiceField(choices=Transport.choices, required=False)
    protocol = serializers.ChoiceField(choices=[one.value for one in Protocol], required=False)
    url = serializers.CharField(max_length=MAX_URL_LENGTH, required=False, allow_blank=True)
    program = serializers.SlugField(
        required=False, help_text="The slug of an entry of the platform's catalogue."
    )
    parameters = TextMapField(required=False, help_text="Values for the program's parameters.")
    headers = TextMapField(
        required=False, write_only=True, help_text="Replaces all request headers."
    )
    env = TextMapField(
        required=False, write_only=True, help_text="Replaces all variables of the program."
    )
    auth_type = serializers.ChoiceField(choices=AuthType.choices, required=False)
    auth = TextMapField(
        required=False,
        write_only=True,
        help_text="bearer: token; api_key: header, value; basic: username, password.",
    )
    connection_config = serializers.DictField(
        required=False, help_text="Times and limits; see the documentation."
    )
    is_active = serializers.BooleanField(required=False)
    trusts_annotations = serializers.BooleanField(required=False)
    allows_new_tools = serializers.BooleanField(required=False)


class ReportOutput(serializers.Serializer[Any]):
    """What came of a look at a server."""

    ok = serializers.BooleanField()
    message = serializers.CharField()
    status = serializers.ChoiceField(choices=ServerStatus.choices)
    protocol_revision = serializers.CharField()
    server_name = serializers.CharField()
    latency_ms = serializers.IntegerField(allow_null=True)
    tool_count = serializers.IntegerField(allow_null=True)
    details = serializers.CharField()


class ToolOutput(serializers.ModelSerializer[McpTool]):
    """A tool as it was last seen."""

    server_id = serializers.UUIDField(read_only=True)
    annotations = serializers.SerializerMethodField()
    input_schema = serializers.DictField(read_only=True)
    output_schema = serializers.DictField(read_only=True, allow_null=True)
    is_removed = serializers.BooleanField(read_only=True)
    is_quarantined = serializers.BooleanField(read_only=True)

    class Meta:
        model = McpTool
        fields = (
            *(
                "id",
                "server_id",
                "name",
                "title",
                "description",
                "input_schema",
                "output_schema",
                "annotations",
            ),
            *(
                "is_enabled",
                "approval_override",
                "definition_hash",
                "is_quarantined",
                "is_removed",
                "problem",
            ),
            *("first_seen_at", "last_seen_at", "removed_at"),
        )
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.BooleanField(allow_null=True)))
    def get_annotations(self, tool: McpTool) -> dict[str, bool | None]:
        """What the server says about the tool."""
        return tool.typed_annotations.as_json()


class ToolInput(StrictSerializer):
    """What may be changed about a tool."""

    is_enabled = serializers.BooleanField(required=False)
    approval_override = serializers.ChoiceField(choices=ApprovalOverride.choices, required=False)


class AcceptInput(StrictSerializer):
    """Which definition was looked at."""

    definition_hash = serializers.RegexField(r"^[0-9a-f]{64}$")


class TryInput(StrictSerializer):
    """One call."""

    # A field called "arguments" is what a tool takes; nothing of it becomes a program's argument.
    arguments = serializers.DictField(required=False)
    confirm = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Yes to exactly this call, where policy asks first.",
    )


class OutcomeOutput(serializers.Serializer[Any]):
    """How a call ended."""

    outcome = serializers.ChoiceField(choices=[(one.value, one.value) for one in Outcome])
    is_error = serializers.BooleanField()
    content = serializers.ListField(child=serializers.DictField(), source="content_as_json")
    structured = serializers.JSONField(allow_null=True)
    message = serializers.CharField()
    duration_ms = serializers.IntegerField()
    truncated = serializers.BooleanField()


class ServerFilters(RowFilterSet):
    """What a list of servers may be narrowed by."""

    is_active = django_filters.BooleanFilter()
    status = django_filters.ChoiceFilter(choices=ServerStatus.choices)
    transport = django_filters.ChoiceFilter(choices=Transport.choices)


class ToolFilters(RowFilterSet):
    """What a list of tools may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    is_enabled = django_filters.BooleanFilter()
    name = django_filters.CharFilter(max_length=256)


class ServerViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """MCP servers of the workspace."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = ServerOutput
    filterset_class = ServerFilters
    orderings: ClassVar[Any] = ("name", "-id", "created_at")

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        return super().get_queryset().select_related("program")

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if not getattr(self, "swagger_fake_view", False) and self.request is not None:
            context["can_manage"] = has_permission(
                self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
            )
        return context

    @extend_schema(request=ServerInput, responses={201: ServerOutput})
    def create(self, request: Request) -> Response:
        """Add a server. It is looked at by the next check, or by `test`."""
        draft = _draft(self.read(ServerInput))
        server = services.add_server(workspace_id=self.workspace.pk, draft=draft, actor=self.actor)
        return self.answer(server, status=201)

    @extend_schema(request=ServerInput, responses=ServerOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a server. One that points elsewhere loses the credentials that are not given anew."""
        server = self.get_object()
        draft = _draft(self.read(ServerInput, partial=True))
        return self.answer(services.update_server(server=server, draft=draft, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a server with its tools."""
        services.delete_server(server=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=ReportOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Connect anew, list the tools, and keep what comes out."""
        report = services.test_connection(server=self.get_object(), actor=self.actor)
        return Response(ReportOutput(report).data)

    @extend_schema(request=None, responses=ReportOutput)
    @action(detail=True, methods=["post"])
    def refresh(self, request: Request, pk: str) -> Response:
        """Read the tool list again."""
        report = services.refresh_tools(server=self.get_object(), actor=self.actor)
        return Response(ReportOutput(report).data)


class ToolViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Tools of the workspace's servers."""

    model = McpTool
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = ToolOutput
    filterset_class = ToolFilters
    orderings: ClassVar[Any] = ("name", "-id")

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        return super().get_queryset().select_related("server")

    @extend_schema(request=ToolInput, responses=ToolOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Switch a tool on or off, or say whether it asks first."""
        tool: McpTool = self.get_object()
        values = self.read(ToolInput, partial=True)
        if "is_enabled" in values:
            tool = services.set_tool_enabled(
                tool=tool, is_enabled=values["is_enabled"], actor=self.actor
            )
        if "approval_override" in values:
            override = ApprovalOverride(values["approval_override"])
            tool = services.set_approval_override(tool=tool, override=override, actor=self.actor)
        return self.answer(tool)

    @extend_schema(request=AcceptInput, responses=ToolOutput)
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Accept the definition that was looked at."""
        tool = self.get_object()
        seen = self.read(AcceptInput)["definition_hash"]
        return self.answer(services.accept_definition(tool=tool, actor=self.actor, seen_hash=seen))

    @extend_schema(request=TryInput, responses=OutcomeOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Call the tool once, through the gate."""
        tool = self.get_object()
        values = self.read(TryInput)
        outcome = tester.try_tool(
            tool=tool,
            arguments=values.get("arguments", {}),
            actor=self.actor,
            is_confirmed=values["confirm"],
        )
        return Response(OutcomeOutput(outcome).data)


def _draft(values: dict[str, Any]) -> ServerDraft:
    program = None
    if "program" in values:
        program = StdioProgram.objects.filter(slug=values["program"], is_enabled=True).first()
        if program is None:
            raise InvalidInput(fields={"program": ["This program is not on offer."]})
    return ServerDraft(
        name=values.get("name"),
        transport=Transport(values["transport"]) if "transport" in values else None,
        protocol=Protocol(values["protocol"]) if "protocol" in values else None,
        url=values.get("url"),
        program=program,
        parameters=values.get("parameters"),
        headers=values.get("headers"),
        env=values.get("env"),
        auth_type=AuthType(values["auth_type"]) if "auth_type" in values else None,
        auth=values.get("auth"),
        connection_config=cast("dict[str, object] | None", values.get("connection_config")),
        is_active=values.get("is_active"),
        trusts_annotations=values.get("trusts_annotations"),
        allows_new_tools=values.get("allows_new_tools"),
    )


routes = [("servers", ServerViewSet), ("tools", ToolViewSet)]
