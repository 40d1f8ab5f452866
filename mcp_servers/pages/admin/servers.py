"""Servers in the admin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import admin
from django.contrib.admin.utils import display_for_field
from django.db import models, transaction
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import McpServer, McpTool, ServerState, ServerStatus, StdioProgram
from mcp_servers.oauth.identity import callback_urls
from mcp_servers.pages.admin.common import in_milliseconds, tell_report, tool_state
from mcp_servers.pages.forms import ServerAdminForm
from mcp_servers.pages.forms.limits import LIMITS
from mcp_servers.registry import services
from mcp_servers.registry.rights import may_manage
from mcp_servers.registry.specs import target_label
from workspaces.pages.model_admin import WorkspaceModelAdmin, actor_of, telling
from workspaces.pages.row_actions import MOST_ASKED, row_action
from workspaces.roles import Permission
from workspaces.words.formats import moment
from workspaces.words.local_times import written_locally

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


def _field(name: str) -> models.Field[Any, Any]:
    return cast("models.Field[Any, Any]", ServerState._meta.get_field(name))


def _of_state(name: str) -> Callable[[McpServer], Any]:
    """A column of a server's state, for lists and pages of servers."""
    field = _field(name)

    def column(server: McpServer) -> Any:
        value = getattr(server.state, name)
        if value and isinstance(field, models.DateTimeField):
            return written_locally(value, moment(value), "minute")
        return display_for_field(value, field, "") or None

    column.__name__ = name
    return admin.display(description=field.verbose_name, ordering=f"state__{name}")(column)


@admin.display(description=_field("resolved_transport").verbose_name)
def resolved_transport(server: McpServer) -> str | None:
    """What works, where the choice was left to the platform."""
    found = server.state.resolved_transport
    names = dict(McpServer._meta.get_field("transport").flatchoices)
    return str(names.get(found, found)) or None


@admin.display(description=_("server version"))
def server_version(server: McpServer) -> str:
    """What the server calls itself."""
    return server.state.server_version


@admin.display(description=_("latency"), ordering="state__latency_ms")
def latency(server: McpServer) -> str | None:
    """How long it took to connect and to ask what the server offers."""
    return in_milliseconds(server.state.latency_ms)


STATE: Final[dict[str, Callable[[McpServer], Any]]] = {
    **{
        name: _of_state(name)
        for name in (
            *("status", "status_reason", "last_connected_at", "last_checked_at"),
            "consecutive_failures",
        )
    },
    "resolved_transport": resolved_transport,
    "protocol_revision": _of_state("protocol_revision"),
    "latency_ms": latency,
    "server_version": server_version,
    **{name: _of_state(name) for name in ("tools_listed_at", "lists_stale_at", "instructions")},
}


_STORED: Final = ("stored_secrets", "callback_addresses", "clears_secrets")
"""What only a server has that is there."""


class StatusFilter(admin.SimpleListFilter):
    """Servers by how they are."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return ServerStatus.choices

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
        return queryset.filter(state__status=self.value()) if self.value() else queryset


@admin.register(McpServer)
class McpServerAdmin(WorkspaceModelAdmin):
    """Servers of the workspace. Their secrets can be written, and are never shown."""

    page_name = _("Servers, all fields")
    deletion_note = _(
        "Buds lose its tools at once. Calls that run now and sign-ins end. What it did stays in the audit log."
    )
    manage_permission = Permission.MANAGE_SERVERS
    form = ServerAdminForm
    list_display = (
        "name",
        "scope",
        "owner",
        "transport",
        "where",
        STATE["status"],
        STATE["latency_ms"],
        STATE["protocol_revision"],
        "tool_count",
        "is_active",
    )
    list_filter = (StatusFilter, "scope", "transport", "is_active")
    search_fields = ("name",)
    list_select_related = ("program", "owner", "global_server", "workspace")
    actions = ("test_connections", "refresh_tool_lists", "disconnect", "switch_on", "switch_off")
    fieldsets = (
        (None, {"fields": ("name", "is_active", "trusts_annotations", "allows_new_tools")}),
        (_("Where it is"), {"fields": ("transport", "url", "program", "parameters", "protocol")}),
        (
            _("Credentials"),
            {
                "fields": (
                    "stored_secrets",
                    "auth_type",
                    "auth_name",
                    "auth_secret",
                    "account_use",
                    "oauth_scope",
                    "callback_addresses",
                    "headers",
                    "env",
                    "clears_secrets",
                )
            },
        ),
        (
            _("What it may ask for, and is told"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("answers_elicitation", "uses_instructions", "sampling"),
                    *("sampling_daily_tokens", "sampling_model", "roots", "log_level"),
                ),
            },
        ),
        (_("Times and limits"), {"classes": ("collapse",), "fields": tuple(LIMITS)}),
        (
            _("State"),
            {
                "fields": (*STATE.values(), "tool_list"),
            },
        ),
    )
    readonly_fields = (
        "callback_addresses",
        *("stored_secrets", *STATE.values(), "tool_list"),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """The rows with the numbers of their tools, for the list."""
        workspace = cast("WorkspaceRequest", request).workspace
        rows = super().get_queryset(request)
        if workspace is None:
            return rows
        tools = McpTool.objects.for_workspace(workspace)
        counted = rows.annotate(
            callable_count=_count_of(tools.callable()), offered_count=_count_of(tools.offered())
        )
        return cast("models.QuerySet[Any]", counted)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """The filter of its own, beside what every admin may filter by."""
        return lookup == StatusFilter.parameter_name or super().lookup_allowed(
            lookup, value, request
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Somebody's own server is theirs to change; an administrator switches it off or deletes it."""
        if obj is not None and obj.owner_id is not None:
            return False
        return super().has_change_permission(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Of somebody's own server only that it exists, where, and how it is; a new one has no state yet."""
        if obj is not None and obj.owner_id is not None:
            return ((None, {"fields": ("name", "owner", "where", STATE["status"], "is_active")}),)
        fieldsets = super().get_fieldsets(request, obj)
        if obj is not None:
            return fieldsets
        return [
            (name, {**options, "fields": [one for one in options["fields"] if one not in _STORED]})
            for name, options in fieldsets
            if options["fields"][0] not in STATE.values()
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and obj.owner_id is not None:
            return ("name", "owner", "where", STATE["status"], "is_active")
        return super().get_readonly_fields(request, obj)

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
        actor = actor_of(request)
        if change:
            saved = services.update_server(server=obj, draft=form.draft(), actor=actor)
        else:
            workspace = cast("WorkspaceRequest", request).workspace
            assert workspace is not None
            saved = services.add_server(workspace_id=workspace.pk, draft=form.draft(), actor=actor)
        obj.__dict__.update(saved.__dict__)
        if not change or "is_active" in form.changed_data:
            _look_first(saved, actor)

    def delete_model(self, request: HttpRequest, obj: McpServer) -> None:
        with telling(request):
            services.delete_server(server=obj, actor=actor_of(request))

    @admin.display(description=_("Where"))
    def where(self, server: McpServer) -> str:
        label = target_label(server)
        # The path of somebody's own server may be a secret of theirs.
        return label if server.owner_id is None else "/".join(label.split("/")[:3])

    @admin.display(description=_("Tools"))
    def tool_count(self, server: McpServer) -> str:
        counts = server.__dict__
        return gettext("%(callable)s of %(offered)s") % {
            "callable": counts.get("callable_count") or 0,
            "offered": counts.get("offered_count") or 0,
        }

    @admin.display(description=_("Register at the issuer"))
    def callback_addresses(self, server: McpServer) -> str:
        """Where a client that somebody registers by hand has to send people back to."""
        return "\n".join(callback_urls(server.pk))

    @admin.display(description=_("Stored"))
    def stored_secrets(self, server: McpServer) -> str:
        stored = {
            gettext("headers"): server.headers,
            gettext("environment"): server.env,
            gettext("credentials"): server.auth_config,
        }
        return ", ".join(name for name, secret in stored.items() if secret) or gettext("nothing")

    @admin.display(description=_("Tools"))
    def tool_list(self, server: McpServer) -> SafeString:
        tools = McpTool.objects.for_workspace(server.workspace_id).filter(server=server)
        return format_html(
            "<ul>{}</ul>",
            format_html_join(
                "",
                "<li><strong>{}</strong> {}</li>",
                ((tool.name, tool_state(tool)) for tool in tools),
            ),
        )

    @row_action(_("Test connection"), most=MOST_ASKED, is_atomic=False)
    def test_connections(self, request: HttpRequest, row: McpServer) -> None:
        report = services.test_connection(server=row, actor=actor_of(request))
        tell_report(request, row, report)

    @row_action(_("Read the tool list again"), most=MOST_ASKED, is_atomic=False)
    def refresh_tool_lists(self, request: HttpRequest, row: McpServer) -> None:
        report = services.refresh_tools(server=row, actor=actor_of(request))
        tell_report(request, row, report)

    @row_action(
        _("Disconnect"),
        done=ngettext_lazy(
            "%(count)s server disconnected. The next call connects it again.",
            "%(count)s servers disconnected. The next call connects each of them again.",
            "count",
        ),
    )
    def disconnect(self, request: HttpRequest, row: McpServer) -> None:
        services.disconnect_server(server=row, actor=actor_of(request))

    @row_action(
        _("Switch on"),
        done=ngettext_lazy(
            "%(count)s server switched on.", "%(count)s servers switched on.", "count"
        ),
    )
    def switch_on(self, request: HttpRequest, row: McpServer) -> None:
        actor = actor_of(request)
        _look_first(services.set_server_active(server=row, is_active=True, actor=actor), actor)

    @row_action(
        _("Switch off"),
        done=ngettext_lazy(
            "%(count)s server switched off.", "%(count)s servers switched off.", "count"
        ),
    )
    def switch_off(self, request: HttpRequest, row: McpServer) -> None:
        services.set_server_active(server=row, is_active=False, actor=actor_of(request))


def _look_first(server: McpServer, actor: Actor) -> None:
    """Have a server that nobody has looked at be tested for this person, as the page of servers does.

    The next check would leave its tools for somebody to accept.
    """
    is_new = server.is_active and server.state.tools_listed_at is None
    if is_new and may_manage(actor, server):
        transaction.on_commit(partial(services.begin_first_look, server=server, actor=actor))


def _count_of(tools: models.QuerySet[McpTool]) -> models.Subquery:
    """How many of these belong to the server at hand; none for no rows."""
    of_server = tools.filter(server=models.OuterRef("pk")).order_by().values("server")
    return models.Subquery(of_server.annotate(number=models.Count("pk")).values("number"))
