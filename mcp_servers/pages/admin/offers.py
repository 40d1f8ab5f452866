"""Tools, resources, prompts and checks in the admin."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import models, transaction
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import ApprovalOverride, HealthCheck, McpPrompt, McpResource, McpTool
from mcp_servers.pages.admin.common import OfServerAdmin, actor_of, tool_state
from mcp_servers.pages.cards import badges_of
from mcp_servers.registry import services
from workspaces.formats import whole
from workspaces.pages.model_admin import telling
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.actors import Actor


class SwitchedAdmin(OfServerAdmin):
    """What servers offer, each switched on or off."""

    manage_permission = Permission.MANAGE_SERVERS
    list_select_related = ("server",)
    actions: tuple[str, ...] = ("switch_on", "switch_off")

    @abstractmethod
    def switch(self, row: Any, *, is_enabled: bool, actor: Actor) -> None:
        """Have the service do it."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        row = type(obj).objects.for_workspace(obj.workspace_id).fetch(obj.pk)
        with telling(request):
            self.switch(row, is_enabled=obj.is_enabled, actor=actor_of(request))

    @admin.action(description=_("Switch on"))
    def switch_on(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        self._switch_all(request, queryset, is_enabled=True)

    @admin.action(description=_("Switch off"))
    def switch_off(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        self._switch_all(request, queryset, is_enabled=False)

    def _switch_all(
        self, request: HttpRequest, queryset: models.QuerySet[Any], *, is_enabled: bool
    ) -> None:
        for row in queryset:
            with telling(request):
                self.switch(row, is_enabled=is_enabled, actor=actor_of(request))


@admin.register(McpTool)
class McpToolAdmin(SwitchedAdmin):
    """Tools of the workspace's servers: which are on, which ask first, which definitions are accepted."""

    list_display = ("name", "server", "badges", "is_enabled", "approval_override", "state")
    list_filter = ("is_enabled", "approval_override")
    search_fields = ("name", "title")
    fields = (
        *(
            "name",
            "server",
            "title",
            "description",
            "badges",
            "state",
            "warnings",
            "renamed_from",
            "task_support",
            "is_enabled",
            "approval_override",
        ),
        *("input_schema", "output_schema", "approved_definition", "cache_seconds"),
        *("first_seen_at", "last_seen_at"),
    )
    readonly_fields = (
        *(
            "name",
            "server",
            "title",
            "description",
            "badges",
            "state",
            "warnings",
            "renamed_from",
            "task_support",
            "input_schema",
            "output_schema",
        ),
        *("approved_definition", "cache_seconds", "first_seen_at", "last_seen_at"),
    )
    actions = (*SwitchedAdmin.actions, "accept_definitions")

    def switch(self, row: McpTool, *, is_enabled: bool, actor: Actor) -> None:
        services.set_tool_enabled(tool=row, is_enabled=is_enabled, actor=actor)

    def save_model(self, request: HttpRequest, obj: McpTool, form: Any, change: bool) -> None:
        tool = (
            McpTool.objects.for_workspace(obj.workspace_id).select_related("server").get(pk=obj.pk)
        )
        with telling(request), transaction.atomic():
            if "is_enabled" in form.changed_data:
                self.switch(tool, is_enabled=obj.is_enabled, actor=actor_of(request))
            if "approval_override" in form.changed_data:
                services.set_approval_override(
                    tool=tool,
                    override=ApprovalOverride(obj.approval_override),
                    actor=actor_of(request),
                )

    @admin.display(description=_("Hints"))
    def badges(self, tool: McpTool) -> str:
        return ", ".join(badge.label for badge in badges_of(tool.typed_annotations))

    @admin.display(description=_("State"))
    def state(self, tool: McpTool) -> str:
        return tool_state(tool)

    @admin.action(description=_("Accept the present definition"))
    def accept_definitions(self, request: HttpRequest, queryset: models.QuerySet[McpTool]) -> None:
        for tool in queryset:
            with telling(request):
                services.accept_definition(tool=tool, actor=actor_of(request))


@admin.register(McpResource)
class McpResourceAdmin(SwitchedAdmin):
    """Resources and templates of the workspace's servers: which of them people may attach."""

    list_display = ("__str__", "server", "is_template", "mime_type", "is_enabled", "removed_at")
    list_filter = ("is_enabled", "is_template")
    search_fields = ("uri", "name", "title")
    readonly_fields = (
        *("server", "uri", "is_template", "name", "title", "description", "mime_type", "size"),
        *("is_watched", "changed_at", "first_seen_at", "last_seen_at", "removed_at"),
    )
    fields = (*readonly_fields, "is_enabled")

    def switch(self, row: McpResource, *, is_enabled: bool, actor: Actor) -> None:
        services.set_resource_enabled(resource=row, is_enabled=is_enabled, actor=actor)


@admin.register(McpPrompt)
class McpPromptAdmin(SwitchedAdmin):
    """Prompts of the workspace's servers: which of them people may use."""

    list_display = ("__str__", "server", "is_enabled", "removed_at")
    list_filter = ("is_enabled",)
    search_fields = ("name", "title")
    readonly_fields = (
        *("server", "name", "title", "description", "arguments"),
        *("first_seen_at", "last_seen_at", "removed_at"),
    )
    fields = (*readonly_fields, "is_enabled")

    def switch(self, row: McpPrompt, *, is_enabled: bool, actor: Actor) -> None:
        services.set_prompt_enabled(prompt=row, is_enabled=is_enabled, actor=actor)


@admin.register(HealthCheck)
class HealthCheckAdmin(OfServerAdmin):
    """How the servers answered; to read only."""

    manage_permission = Permission.MANAGE_SERVERS
    list_display = ("checked_at", "server", "is_ok", "latency", "error")
    list_filter = ("is_ok",)
    list_select_related = ("server",)
    fields = list_display
    readonly_fields = fields

    @admin.display(description=_("latency"), ordering="latency_ms")
    def latency(self, check: HealthCheck) -> str:
        return "–" if check.latency_ms is None else f"{whole(check.latency_ms)} ms"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
