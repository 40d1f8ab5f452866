"""Servers over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import django_filters
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import (
    LogLevel,
    McpServer,
    SamplingPolicy,
    ServerScope,
    ServerStatus,
    StdioProgram,
)
from mcp_servers.models.server_credentials import AccountUse, AuthType
from mcp_servers.models.servers import MAX_NAME_LENGTH
from mcp_servers.oauth.identity import callback_urls
from mcp_servers.pages.api.common import TextMapField
from mcp_servers.pages.api.connections import AccountOutput
from mcp_servers.pages.cards import people_of
from mcp_servers.pages.trace_files import give_trace
from mcp_servers.registry import services
from mcp_servers.registry.rights import may_manage, require_to_manage
from mcp_servers.registry.services import ServerDraft
from mcp_servers.registry.services.credentials import unfilled_values
from mcp_servers.registry.services.drafts import MAX_ROOTS, MAX_SAMPLING_TOKENS, MAX_SCOPE_LENGTH
from mcp_servers.registry.specs import target_label
from mcp_servers.registry.trace import download as downloads
from mcp_servers.registry.trace.reading import DIRECTIONS, TraceFilter
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.outbound import MAX_URL_LENGTH

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


def _time_of_state(name: str) -> serializers.DateTimeField:
    return serializers.DateTimeField(source=f"state.{name}", read_only=True, allow_null=True)


class SeenTool(serializers.Serializer[Any]):
    """A tool, and which definition of it was looked at."""

    tool = serializers.UUIDField()
    definition_hash = serializers.RegexField(r"^[0-9a-f]{64}$")


class AcceptAllInput(serializers.Serializer[Any]):
    """Tools that are accepted together; those with warnings are accepted one by one."""

    tools = serializers.ListField(child=SeenTool(), min_length=1, max_length=500)


class ServerOutput(serializers.ModelSerializer[McpServer]):
    """A server without anything secret."""

    program = serializers.SlugField(
        source="program.slug", default=None, read_only=True, allow_null=True
    )
    url = serializers.SerializerMethodField()
    has_headers = serializers.SerializerMethodField()
    has_env = serializers.SerializerMethodField()
    has_credentials = serializers.SerializerMethodField()
    unfilled = serializers.SerializerMethodField()
    callback_urls = serializers.SerializerMethodField()
    parameters = serializers.SerializerMethodField()
    connection_config = serializers.DictField(read_only=True)
    status = serializers.ChoiceField(
        choices=ServerStatus.choices, source="state.status", read_only=True
    )
    status_reason = serializers.SerializerMethodField()
    latency_ms = serializers.IntegerField(
        source="state.latency_ms", read_only=True, allow_null=True
    )
    consecutive_failures = serializers.IntegerField(
        source="state.consecutive_failures", read_only=True
    )
    last_connected_at = _time_of_state("last_connected_at")
    last_checked_at = _time_of_state("last_checked_at")
    next_check_at = _time_of_state("next_check_at")
    tools_listed_at = _time_of_state("tools_listed_at")
    lists_stale_at = _time_of_state("lists_stale_at")
    resolved_transport = serializers.CharField(source="state.resolved_transport", read_only=True)
    instructions = serializers.CharField(source="state.instructions", read_only=True)
    protocol_revision = serializers.CharField(source="state.protocol_revision", read_only=True)
    server_info = serializers.DictField(source="state.server_info", read_only=True)
    capabilities = serializers.DictField(source="state.capabilities", read_only=True)
    roots = serializers.ListField(child=serializers.DictField(), read_only=True)

    class Meta:
        model = McpServer
        fields = (
            *("id", "name", "transport", "protocol", "url", "program", "parameters"),
            *("has_headers", "has_env", "auth_type", "has_credentials", "connection_config"),
            "unfilled",
            *("account_use", "oauth_scope", "callback_urls"),
            *("is_active", "is_used_everywhere", "trusts_annotations", "allows_new_tools", "scope"),
            *("answers_elicitation", "uses_instructions", "sampling", "sampling_daily_tokens"),
            *("sampling_provider_id", "sampling_model", "roots", "log_level"),
            *("status", "status_reason", "latency_ms", "consecutive_failures"),
            *("last_connected_at", "last_checked_at", "next_check_at"),
            *("tools_listed_at", "lists_stale_at", "resolved_transport", "instructions"),
            *("protocol_revision", "server_info", "capabilities", "created_at", "updated_at"),
        )
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_url(self, server: McpServer) -> str:
        """The whole URL for those who may change it; a query may hold what others should not see."""
        if server.transport == transports.STDIO or server.scope == ServerScope.GLOBAL:
            return ""
        return server.url if self._can_manage(server) else target_label(server)

    @extend_schema_field(serializers.DictField())
    def get_parameters(self, server: McpServer) -> dict[str, Any]:
        """Of a program, for those who may change it; an address in them may hold a password."""
        return server.parameters if self._can_manage(server) else {}

    @extend_schema_field(serializers.CharField())
    def get_status_reason(self, server: McpServer) -> str:
        """What is wrong; the words of the server's program only for those who may change it."""
        reason = server.state.status_reason
        return reason if self._can_manage(server) else reason.partition("\n")[0]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_callback_urls(self, server: McpServer) -> list[str]:
        """Where people sign in: what to register at the issuer, if you register a client by hand."""
        return callback_urls(server.pk) if server.auth_type == AuthType.OAUTH else []

    def _can_manage(self, server: McpServer) -> bool:
        actor = self.context.get("actor")
        return actor is not None and may_manage(actor, server)

    def get_has_headers(self, server: McpServer) -> bool:
        """Whether request headers are stored."""
        return bool(server.headers)

    def get_has_env(self, server: McpServer) -> bool:
        """Whether variables are stored."""
        return bool(server.env)

    def get_has_credentials(self, server: McpServer) -> bool:
        """Whether credentials are stored."""
        return bool(server.auth_config)

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_unfilled(self, server: McpServer) -> list[str]:
        """Headers, variables and parameters that seem to hold a placeholder, for those who may change it.

        Empty once the server listed its tools. Enter their values.
        """
        return list(unfilled_values(server)) if self._can_manage(server) else []


class RootInput(serializers.Serializer[Any]):
    """A folder."""

    uri = serializers.CharField(max_length=1000)
    name = serializers.CharField(max_length=100, required=False, allow_blank=True)


_PROGRAM_WORDS: Final = frozenset(
    {"command", "args", "argv", "arguments", "cwd", "executable", "shell"}
)


class ServerInput(serializers.Serializer[Any]):
    """A server as somebody wants it. Secrets are written here and never read back."""

    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    transport = serializers.ChoiceField(choices=transports.choices(), required=False)
    protocol = serializers.ChoiceField(choices=[one.value for one in Protocol], required=False)
    url = serializers.CharField(max_length=MAX_URL_LENGTH, required=False, allow_blank=True)
    program = serializers.SlugField(
        required=False,
        allow_null=True,
        help_text="The slug of an entry of the platform's catalogue. Null: it runs no program.",
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
        help_text="bearer: token; api_key: header, value; basic: username, password; oauth and oauth_client: client_id, client_secret or private_key.",
    )
    account_use = serializers.ChoiceField(
        choices=AccountUse.choices,
        required=False,
        help_text="Where people sign in: each with an account of their own, or one account for the workspace.",
    )
    oauth_scope = serializers.CharField(
        required=False,
        max_length=MAX_SCOPE_LENGTH,
        allow_blank=True,
        help_text="Scopes to ask for; empty: what the server says it needs.",
    )
    connection_config = serializers.DictField(
        required=False, help_text="Times and limits; see the documentation."
    )
    is_active = serializers.BooleanField(required=False)
    is_used_everywhere = serializers.BooleanField(
        required=False,
        help_text="In every bud that takes all tools; your own server: in all your chats. New servers are, unless you say no.",
    )
    bud_ids = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        write_only=True,
        max_length=100,
        help_text="Buds that use it from now on, whatever tools they take.",
    )
    trusts_annotations = serializers.BooleanField(required=False)
    allows_new_tools = serializers.BooleanField(required=False)
    answers_elicitation = serializers.BooleanField(required=False)
    uses_instructions = serializers.BooleanField(required=False)
    sampling = serializers.ChoiceField(choices=SamplingPolicy.choices, required=False)
    sampling_daily_tokens = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_SAMPLING_TOKENS
    )
    sampling_provider_id = serializers.UUIDField(required=False, allow_null=True)
    sampling_model = serializers.CharField(required=False, max_length=200, allow_blank=True)
    roots = serializers.ListField(
        child=RootInput(),
        required=False,
        max_length=MAX_ROOTS,
        help_text="Folders the server is told it may work in.",
    )
    log_level = serializers.ChoiceField(choices=LogLevel.choices, required=False, allow_blank=True)


class ServerReportOutput(serializers.Serializer[Any]):
    """What came of a look at a server."""

    ok = serializers.BooleanField()
    message = serializers.CharField()
    status = serializers.ChoiceField(choices=ServerStatus.choices)
    protocol_revision = serializers.CharField()
    server_name = serializers.CharField()
    latency_ms = serializers.IntegerField(allow_null=True)
    tool_count = serializers.IntegerField(allow_null=True)
    transport = serializers.CharField()
    resource_count = serializers.IntegerField(allow_null=True)
    prompt_count = serializers.IntegerField(allow_null=True)
    details = serializers.CharField()


class ConnectionOutput(serializers.Serializer[Any]):
    """One connection of the process that answers."""

    principal = serializers.SerializerMethodField()
    state = serializers.CharField()
    since = serializers.DateTimeField()
    in_flight = serializers.IntegerField()
    failures = serializers.IntegerField()
    next_attempt_seconds = serializers.FloatField(allow_null=True)
    transport = serializers.CharField()
    protocol_revision = serializers.CharField()

    def get_principal(self, status: Any) -> str:
        """Whose credentials it carries: the workspace's, or a person's."""
        return str(status.principal).partition(":")[0]


class TraceFileQuery(serializers.Serializer[Any]):
    """Which messages a file of the trace holds."""

    direction = serializers.ChoiceField(DIRECTIONS, required=False)
    method = serializers.CharField(
        required=False, max_length=100, help_text="Such as `tools/call`."
    )
    rpc_id = serializers.CharField(required=False, max_length=100)
    call_id = serializers.UUIDField(required=False, help_text="Of one tool call.")
    text = serializers.CharField(
        required=False, max_length=100, help_text="A part of an event's or an error's text."
    )
    errors_only = serializers.BooleanField(required=False)
    with_checks = serializers.BooleanField(
        required=False, help_text="Regular health checks that went well, too."
    )
    with_lists = serializers.BooleanField(
        required=False, help_text="Lists of tools, resources and prompts, too."
    )


class ServerFilters(RowFilterSet):
    """What a list of servers may be narrowed by."""

    is_active = TruthFilter()
    status = django_filters.ChoiceFilter("state__status", choices=ServerStatus.choices)
    scope = django_filters.ChoiceFilter(choices=ServerScope.choices)
    transport = django_filters.ChoiceFilter(choices=transports.choices())


class ServerViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """MCP servers of the workspace."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = ServerOutput
    filterset_class = ServerFilters
    orderings: ClassVar[Any] = ("name", "-id", "created_at")
    parameters: ClassVar[Any] = {"trace_file": tuple(TraceFileQuery._declared_fields)}

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().select_related("program", "global_server", "workspace")

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if not getattr(self, "swagger_fake_view", False) and self.request is not None:
            context["actor"] = self.actor
        return context

    def _read_draft(self, scope: str, *, partial: bool = False) -> ServerDraft:
        """Read a server as somebody wants it.

        Args:
            scope: the one that it is in. No request moves a server into another.

        Raises:
            PermissionDenied: a field would name a program; programs come from the platform's catalogue alone.
            ValidationError: a field does not fit, or means nothing here.
        """
        sent = self.request.data
        if isinstance(sent, dict):
            if not _PROGRAM_WORDS.isdisjoint(sent):
                raise PermissionDenied(_("Pick a program from the platform's catalogue."))
            if sent.get("scope", scope) != scope:
                raise serializers.ValidationError({"scope": [_("The scope cannot be chosen.")]})
        return _draft(self.read(ServerInput, partial=partial))

    @extend_schema(request=ServerInput, responses={201: ServerOutput})
    def create(self, request: Request) -> Response:
        """Add a server. It is looked at by the next check, or by `test`."""
        draft = self._read_draft(ServerScope.WORKSPACE)
        server = services.add_server(workspace_id=self.workspace.pk, draft=draft, actor=self.actor)
        return self.answer(server, status=201)

    @extend_schema(request=ServerInput, responses=ServerOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a server. One that points elsewhere loses the credentials that are not given anew."""
        server = self.get_object()
        draft = self._read_draft(server.scope, partial=True)
        return self.answer(services.update_server(server=server, draft=draft, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a server with its tools."""
        services.delete_server(server=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=ServerReportOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Connect anew, list the tools, and keep what comes out."""
        report = services.test_connection(server=self.get_object(), actor=self.actor)
        return Response(ServerReportOutput(report).data)

    @extend_schema(request=None, responses=ServerReportOutput)
    @action(detail=True, methods=["post"])
    def connect(self, request: Request, pk: str) -> Response:
        """Open a connection now, whatever pause the server was given, and read what it offers."""
        report = services.refresh_tools(server=self.get_object(), actor=self.actor)
        return Response(ServerReportOutput(report).data)

    @extend_schema(request=None, responses=ServerOutput)
    @action(detail=True, methods=["post"])
    def disconnect(self, request: Request, pk: str) -> Response:
        """Close the connections of this process; calls that run on them end."""
        server = services.disconnect_server(server=self.get_object(), actor=self.actor)
        return self.answer(server)

    @extend_schema(responses=ConnectionOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def connections(self, request: Request, pk: str) -> Response:
        """The connections of the process that answers, one for each principal that has or had one."""
        server = self.get_object()
        require_to_manage(self.actor, server)
        return Response(ConnectionOutput(services.connections_of(server), many=True).data)

    @extend_schema(responses=AccountOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def people(self, request: Request, pk: str) -> Response:
        """Who is connected to this server, for whoever manages it."""
        server = self.get_object()
        require_to_manage(self.actor, server)
        return Response(AccountOutput(people_of(server), many=True).data)

    @extend_schema(request=ServerInput, responses={201: ServerOutput})
    @action(detail=False, methods=["post"])
    def personal(self, request: Request) -> Response:
        """Add a server that only you see and use, where the workspace allows it."""
        draft = self._read_draft(ServerScope.PERSONAL)
        server = services.add_personal_server(
            workspace=self.workspace, draft=draft, actor=self.actor
        )
        return self.answer(server, status=201)

    @extend_schema(request=ServerInput, responses=ServerReportOutput)
    @action(detail=False, methods=["post"], url_path="personal/try")
    def try_personal(self, request: Request) -> Response:
        """Connect to a server that you would add for yourself, and keep nothing."""
        draft = self._read_draft(ServerScope.PERSONAL)
        report = services.try_personal_connection(
            workspace=self.workspace, draft=draft, actor=self.actor
        )
        return Response(ServerReportOutput(report).data)

    @extend_schema(
        request=ServerInput,
        responses=ServerReportOutput,
        examples=[
            OpenApiExample(
                "By its address",
                value={"name": "docs", "url": "https://mcp.example.org/mcp"},
                request_only=True,
            )
        ],
    )
    @action(detail=False, methods=["post"], url_path="try")
    def try_out(self, request: Request) -> Response:
        """Connect to a server that is not saved, and keep nothing."""
        draft = self._read_draft(ServerScope.WORKSPACE)
        report = services.try_connection(
            workspace_id=self.workspace.pk, draft=draft, actor=self.actor
        )
        return Response(ServerReportOutput(report).data)

    @extend_schema(
        parameters=[TraceFileQuery],
        responses={(200, downloads.MEDIA_TYPE): OpenApiTypes.BINARY},
        filters=False,
    )
    @action(detail=True, methods=["get"], url_path="trace-file", pagination_class=None)
    def trace_file(self, request: Request, pk: str) -> HttpResponseBase:
        """Take the trace away as JSON lines, oldest first. That you took it is an entry of the log.

        Bodies come only with messages that you may open.
        """
        wanted = TraceFilter(**self.read_query(TraceFileQuery))
        return give_trace(
            request._request,
            self.get_object(),
            slug=self.workspace.slug,
            wanted=wanted,
            actor=self.actor,
        )

    @extend_schema(request=AcceptAllInput, responses=ServerOutput)
    @action(detail=True, methods=["post"], url_path="accept-tools")
    def accept_tools(self, request: Request, pk: str) -> Response:
        """Accept several new or changed tools as they were looked at; all of them or none."""
        server = self.get_object()
        seen = {one["tool"]: one["definition_hash"] for one in self.read(AcceptAllInput)["tools"]}
        services.accept_definitions(server=server, seen=seen, actor=self.actor)
        return self.answer(server)

    @extend_schema(request=None, responses=ServerReportOutput)
    @action(detail=True, methods=["post"])
    def refresh(self, request: Request, pk: str) -> Response:
        """Read the tool list again."""
        report = services.refresh_tools(server=self.get_object(), actor=self.actor)
        return Response(ServerReportOutput(report).data)


def _draft(values: dict[str, Any]) -> ServerDraft:
    program = None
    if values.get("program") is not None:
        program = StdioProgram.objects.filter(slug=values["program"]).first()
        if program is None:
            raise InvalidInput(fields={"program": [_("No program has this slug.")]})
    return ServerDraft(
        name=values.get("name"),
        transport=values.get("transport"),
        protocol=Protocol(values["protocol"]) if "protocol" in values else None,
        url=values.get("url"),
        program=program,
        parameters=values.get("parameters"),
        headers=values.get("headers"),
        env=values.get("env"),
        auth_type=AuthType(values["auth_type"]) if "auth_type" in values else None,
        auth=values.get("auth"),
        account_use=AccountUse(values["account_use"]) if "account_use" in values else None,
        oauth_scope=values.get("oauth_scope"),
        connection_config=cast("dict[str, object] | None", values.get("connection_config")),
        is_active=values.get("is_active"),
        is_used_everywhere=values.get("is_used_everywhere"),
        bud_ids=values.get("bud_ids", ()),
        trusts_annotations=values.get("trusts_annotations"),
        allows_new_tools=values.get("allows_new_tools"),
        answers_elicitation=values.get("answers_elicitation"),
        uses_instructions=values.get("uses_instructions"),
        sampling=SamplingPolicy(values["sampling"]) if "sampling" in values else None,
        sampling_daily_tokens=values.get("sampling_daily_tokens"),
        sampling_provider_id=values.get("sampling_provider_id"),
        clears_sampling_provider="sampling_provider_id" in values
        and values["sampling_provider_id"] is None,
        sampling_model=values.get("sampling_model"),
        roots=[dict(root) for root in values["roots"]] if "roots" in values else None,
        log_level=LogLevel(values["log_level"]) if "log_level" in values else None,
    )
