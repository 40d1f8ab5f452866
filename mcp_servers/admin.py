"""Servers, tools and the program catalogue in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from mcp_servers import services
from mcp_servers.cards import badges_of
from mcp_servers.forms import ServerAdminForm
from mcp_servers.models import HealthCheck, McpServer, McpTool, StdioProgram
from workspaces.admin import TrackedModelAdmin, WorkspaceModelAdmin, telling
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


def _actor(request: HttpRequest) -> Actor:
    return cast("WorkspaceRequest", request).actor


@admin.register(McpServer)
class McpServerAdmin(WorkspaceModelAdmin):
    """Servers of the workspace. Their secrets can be written, and are never shown."""

    manage_permission = Permission.MANAGE_SERVERS
    form = ServerAdminForm
    list_display = (
        "name",
        "transport",
        "where",
        "status",
        "latency_ms",
        "protocol_revision",
        "tool_count",
        "is_active",
    )
    list_filter = ("status", "transport", "is_active")
    search_fields = ("name",)
    list_select_related = ("program",)
    actions = ("test_connections", "refresh_tool_lists", "switch_on", "switch_off")
    fieldsets = (
        (None, {"fields": ("name", "is_active", "trusts_annotations", "allows_new_tools")}),
        ("Where it is", {"fields": ("transport", "url", "program", "parameters", "protocol")}),
        (
            "Credentials",
            {
                "fields": (
                    "stored_secrets",
                    "auth_type",
                    "auth_name",
                    "auth_secret",
                    "headers",
                    "env",
                    "clears_secrets",
                )
            },
        ),
        ("Times and limits", {"fields": ("connection_config",)}),
        (
            "State",
            {
                "fields": (
                    *(
                        "status",
                        "status_reason",
                        "last_connected_at",
                        "last_checked_at",
                        "consecutive_failures",
                    ),
                    *("latency_ms", "protocol_revision", "server_version", "tool_list"),
                )
            },
        ),
    )
    readonly_fields = (
        *("stored_secrets", "status", "status_reason", "last_connected_at", "last_checked_at"),
        *("consecutive_failures", "latency_ms", "protocol_revision", "server_version", "tool_list"),
    )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form, which knows for which workspace it is."""
        form = super().get_form(request, obj, change, **kwargs)
        workspace = cast("WorkspaceRequest", request).workspace
        return type(
            "BoundServerForm", (form,), {"workspace_id": workspace.pk if workspace else None}
        )

    def choices_for(self, db_field: Any, request: HttpRequest) -> models.QuerySet[Any]:
        """Programs are the platform's: those on offer."""
        if db_field.name == "program":
            return StdioProgram.objects.filter(is_enabled=True)
        return super().choices_for(db_field, request)

    def save_model(
        self, request: HttpRequest, obj: McpServer, form: ServerAdminForm, change: bool
    ) -> None:
        """Save through the service, as the page and the REST interface do."""
        if change:
            saved = services.update_server(server=obj, draft=form.draft(), actor=_actor(request))
        else:
            workspace = cast("WorkspaceRequest", request).workspace
            assert workspace is not None
            saved = services.add_server(
                workspace_id=workspace.pk, draft=form.draft(), actor=_actor(request)
            )
        obj.__dict__.update(saved.__dict__)

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        with telling(request):
            services.delete_server(server=obj, actor=_actor(request))

    @admin.display(description="Where")
    def where(self, server: McpServer) -> str:
        return server.target_label

    @admin.display(description="Tools")
    def tool_count(self, server: McpServer) -> str:
        tools = McpTool.objects.for_workspace(server.workspace_id).filter(server=server)
        return f"{tools.callable().count()} of {tools.offered().count()}"

    @admin.display(description="Stored")
    def stored_secrets(self, server: McpServer) -> str:
        stored = {
            "headers": server.headers,
            "environment": server.env,
            "credentials": server.auth_config,
        }
        return ", ".join(name for name, secret in stored.items() if secret) or "nothing"

    @admin.display(description="Tools")
    def tool_list(self, server: McpServer) -> SafeString:
        if server._state.adding:
            return SafeString("–")
        tools = McpTool.objects.for_workspace(server.workspace_id).filter(server=server)
        return format_html(
            "<ul>{}</ul>",
            format_html_join(
                "",
                "<li><strong>{}</strong> {}</li>",
                ((tool.name, tool_state(tool)) for tool in tools),
            ),
        )

    @admin.action(description="Test connection")
    def test_connections(self, request: HttpRequest, queryset: models.QuerySet[McpServer]) -> None:
        for server in queryset:
            with telling(request):
                _tell_report(
                    request, server, services.test_connection(server=server, actor=_actor(request))
                )

    @admin.action(description="Read the tool list again")
    def refresh_tool_lists(
        self, request: HttpRequest, queryset: models.QuerySet[McpServer]
    ) -> None:
        for server in queryset:
            with telling(request):
                _tell_report(
                    request, server, services.refresh_tools(server=server, actor=_actor(request))
                )

    @admin.action(description="Switch on")
    def switch_on(self, request: HttpRequest, queryset: models.QuerySet[McpServer]) -> None:
        self._switch(request, queryset, is_active=True)

    @admin.action(description="Switch off")
    def switch_off(self, request: HttpRequest, queryset: models.QuerySet[McpServer]) -> None:
        self._switch(request, queryset, is_active=False)

    def _switch(
        self, request: HttpRequest, queryset: models.QuerySet[McpServer], *, is_active: bool
    ) -> None:
        for server in queryset:
            with telling(request):
                services.set_server_active(
                    server=server, is_active=is_active, actor=_actor(request)
                )


@admin.register(McpTool)
class McpToolAdmin(WorkspaceModelAdmin):
    """Tools of the workspace's servers: which are on, which ask first, which definitions are accepted."""

    manage_permission = Permission.MANAGE_SERVERS
    list_display = ("name", "server", "badges", "is_enabled", "approval_override", "state")
    list_filter = ("is_enabled", "approval_override")
    list_select_related = ("server",)
    search_fields = ("name", "title")
    fields = (
        *(
            "name",
            "server",
            "title",
            "description",
            "badges",
            "state",
            "is_enabled",
            "approval_override",
        ),
        *("input_schema", "output_schema", "approved_definition", "first_seen_at", "last_seen_at"),
    )
    readonly_fields = (
        *(
            "name",
            "server",
            "title",
            "description",
            "badges",
            "state",
            "input_schema",
            "output_schema",
        ),
        *("approved_definition", "first_seen_at", "last_seen_at"),
    )
    actions = ("switch_on", "switch_off", "accept_definitions")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # tools come from their servers

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="Says of itself")
    def badges(self, tool: McpTool) -> str:
        return ", ".join(badge.label for badge in badges_of(tool.typed_annotations))

    @admin.display(description="State")
    def state(self, tool: McpTool) -> str:
        return tool_state(tool)

    @admin.action(description="Switch on")
    def switch_on(self, request: HttpRequest, queryset: models.QuerySet[McpTool]) -> None:
        for tool in queryset:
            with telling(request):
                services.set_tool_enabled(tool=tool, is_enabled=True, actor=_actor(request))

    @admin.action(description="Switch off")
    def switch_off(self, request: HttpRequest, queryset: models.QuerySet[McpTool]) -> None:
        for tool in queryset:
            with telling(request):
                services.set_tool_enabled(tool=tool, is_enabled=False, actor=_actor(request))

    @admin.action(description="Accept the present definition")
    def accept_definitions(self, request: HttpRequest, queryset: models.QuerySet[McpTool]) -> None:
        for tool in queryset:
            with telling(request):
                services.accept_definition(tool=tool, actor=_actor(request))


@admin.register(HealthCheck)
class HealthCheckAdmin(WorkspaceModelAdmin):
    """How the servers answered; to read only."""

    manage_permission = Permission.MANAGE_SERVERS
    list_display = ("checked_at", "server", "is_ok", "latency_ms", "error")
    list_filter = ("is_ok",)
    list_select_related = ("server",)
    fields = ("checked_at", "server", "is_ok", "latency_ms", "error")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(StdioProgram)
class StdioProgramAdmin(TrackedModelAdmin):
    """The platform's catalogue, for its owner alone."""

    list_display = ("title", "slug", "command", "is_enabled")
    search_fields: ClassVar[Any] = ("title", "slug")
    fields = (
        "title",
        "slug",
        "description",
        "command",
        "args",
        "parameters",
        "env_names",
        "is_enabled",
    )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_owner(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_owner(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_owner(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_owner(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_owner(request)


def tool_state(tool: McpTool) -> str:
    """In a few words."""
    if tool.is_removed:
        return "removed by the server"
    if tool.problem:
        return f"left out: {tool.problem}"
    if tool.is_quarantined:
        return "changed; to be accepted" if tool.approved_hash else "new; to be accepted"
    return "accepted" if tool.is_enabled else "switched off"


def _is_owner(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def _tell_report(
    request: HttpRequest, server: McpServer, report: services.ConnectionReport
) -> None:
    if report.ok:
        told = f"{server.name}: connected in {report.latency_ms} ms, protocol {report.protocol_revision}, {report.tool_count} tools."
        messages.success(request, f"{told} {report.message}".strip())
    else:
        messages.error(request, f"{server.name}: {report.message}")
