"""Tools, resources, prompts and checks in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from mcp_servers.models import ApprovalOverride, HealthCheck, McpPrompt, McpResource, McpTool
from mcp_servers.pages.admin.common import OfServerAdmin, in_milliseconds, tool_state
from mcp_servers.pages.cards import badges_of, offer_of, unchecked_results
from mcp_servers.registry import services
from workspaces.pages.model_admin import ReadOnly, actor_of, telling
from workspaces.pages.row_actions import row_action
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.words.texts import Text


class SwitchedAdmin(OfServerAdmin):
    """What servers offer, each switched on or off."""

    manage_permission = Permission.MANAGE_SERVERS
    list_select_related: tuple[str, ...] = ("server",)
    actions: tuple[str, ...] = ("switch_on", "switch_off")

    def switch(self, row: Any, *, is_enabled: bool, actor: Actor) -> None:
        services.set_offer_enabled(offer=row, is_enabled=is_enabled, actor=actor)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        row = type(obj).objects.for_workspace(obj.workspace_id).fetch(obj.pk)
        with telling(request):
            self.switch(row, is_enabled=obj.is_enabled, actor=actor_of(request))


def _switch(description: Text, done: Any, *, is_enabled: bool) -> Any:
    """The action that switches what servers offer."""

    def act(shown: SwitchedAdmin, request: HttpRequest, row: Any) -> None:
        shown.switch(row, is_enabled=is_enabled, actor=actor_of(request))

    act.__name__ = "switch_on" if is_enabled else "switch_off"
    return row_action(description, done=done, permissions=["change"])(act)


def _override(override: ApprovalOverride, description: Text, done: Any) -> Any:
    """The action that says of tools whether they ask first."""

    def act(shown: McpToolAdmin, request: HttpRequest, row: McpTool) -> None:
        services.set_approval_override(tool=row, override=override, actor=actor_of(request))

    act.__name__ = f"approval_{override.value}"
    return row_action(description, done=done, permissions=["change"])(act)


_ABOUT_TOOL: Final = (
    *("name", "server", "title", "description"),
    *("badges", "state", "warned_of", "results"),
)


@admin.register(McpTool)
class McpToolAdmin(SwitchedAdmin):
    """Tools of the workspace's servers: which are on, and which ask first. They are accepted on the page that shows them."""

    where_from = _("Servers bring them. Add one under “Servers”.")
    list_display = ("name", "server", "badges", "is_enabled", "approval_override", "state")
    list_select_related = ("server", "workspace")
    list_filter = ("is_enabled", "approval_override")
    search_fields = ("name", "title", "server__name")
    fieldsets = (
        (None, {"fields": _ABOUT_TOOL}),
        (_("Use"), {"fields": ("is_enabled", "approval_override")}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("input_schema", "output_schema", "approved_definition", "renamed_from"),
                    *("task_support", "cache_seconds", "first_seen_at", "last_seen_at"),
                ),
            },
        ),
    )
    readonly_fields = (
        *_ABOUT_TOOL,
        *("renamed_from", "task_support", "input_schema", "output_schema"),
        *("approved_definition", "cache_seconds", "first_seen_at", "last_seen_at"),
    )
    actions = (
        *(*SwitchedAdmin.actions, "approval_confirm", "approval_auto"),
        *("approval_deny", "approval_inherit"),
    )

    switch_on = _switch(
        _("Switch on"),
        ngettext_lazy("%(count)s tool switched on.", "%(count)s tools switched on.", "count"),
        is_enabled=True,
    )
    switch_off = _switch(
        _("Switch off"),
        ngettext_lazy("%(count)s tool switched off.", "%(count)s tools switched off.", "count"),
        is_enabled=False,
    )

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
        """In words. What waits to be accepted leads to the page that shows it, since this one shows only a part."""
        words = tool_state(tool)
        if tool.is_removed or tool.problem or not tool.is_quarantined:
            return words
        url = reverse("mcp_servers:review", args=[tool.workspace.slug, tool.server_id])
        return format_html('<a href="{}">{}</a>', url, words)

    @admin.display(description=_("Warnings"))
    def warned_of(self, tool: McpTool) -> str | None:
        """Each on a line."""
        return "\n".join(tool.warnings) or None

    @admin.display(description=_("Structured results"))
    def results(self, tool: McpTool) -> str | None:
        if tool.output_problem:
            return unchecked_results(tool)
        return _now("Checked against the output schema.") if tool.output_schema else None

    approval_confirm = _override(
        ApprovalOverride.CONFIRM,
        _("Approval: ask first"),
        ngettext_lazy("%(count)s tool asks first.", "%(count)s tools ask first.", "count"),
    )
    approval_auto = _override(
        ApprovalOverride.AUTO,
        _("Approval: run by itself"),
        ngettext_lazy(
            "%(count)s tool runs by itself.", "%(count)s tools run by themselves.", "count"
        ),
    )
    approval_deny = _override(
        ApprovalOverride.DENY,
        _("Approval: block"),
        ngettext_lazy("%(count)s tool blocked.", "%(count)s tools blocked.", "count"),
    )
    approval_inherit = _override(
        ApprovalOverride.INHERIT,
        _("Approval: default"),
        ngettext_lazy(
            "%(count)s tool follows the default again.",
            "%(count)s tools follow the default again.",
            "count",
        ),
    )


@admin.register(McpResource)
class McpResourceAdmin(SwitchedAdmin):
    """Resources and templates of the workspace's servers: which of them people may attach."""

    where_from = _(
        "Some servers bring resources, such as files or pages, which people attach to their messages."
    )
    list_display = ("__str__", "server", "is_template", "mime_type", "is_enabled", "removed_at")
    list_filter = ("is_enabled", "is_template")
    search_fields = ("uri", "name", "title", "server__name")
    readonly_fields = (
        *("server", "uri", "is_template", "name", "title", "description", "mime_type", "size"),
        *("is_watched", "changed_at", "first_seen_at", "last_seen_at", "removed_at"),
    )
    fieldsets = (
        (None, {"fields": ("server", "uri", "name", "title", "description", "is_enabled")}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("is_template", "mime_type", "size", "is_watched", "changed_at"),
                    *("first_seen_at", "last_seen_at", "removed_at"),
                ),
            },
        ),
    )

    switch_on = _switch(
        _("Switch on"),
        ngettext_lazy(
            "%(count)s resource switched on.", "%(count)s resources switched on.", "count"
        ),
        is_enabled=True,
    )
    switch_off = _switch(
        _("Switch off"),
        ngettext_lazy(
            "%(count)s resource switched off.", "%(count)s resources switched off.", "count"
        ),
        is_enabled=False,
    )


@admin.register(McpPrompt)
class McpPromptAdmin(SwitchedAdmin):
    """Prompts of the workspace's servers: which of them people may use."""

    where_from = _("Some servers bring prompts, which people begin a message with.")
    list_display = ("__str__", "server", "is_enabled", "removed_at")
    list_filter = ("is_enabled",)
    search_fields = ("name", "title", "server__name")
    readonly_fields = (
        *("server", "name", "title", "description", "takes"),
        *("first_seen_at", "last_seen_at", "removed_at"),
    )
    fieldsets = (
        (None, {"fields": ("server", "name", "title", "description", "takes", "is_enabled")}),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": ("first_seen_at", "last_seen_at", "removed_at"),
            },
        ),
    )

    switch_on = _switch(
        _("Switch on"),
        ngettext_lazy("%(count)s prompt switched on.", "%(count)s prompts switched on.", "count"),
        is_enabled=True,
    )
    switch_off = _switch(
        _("Switch off"),
        ngettext_lazy("%(count)s prompt switched off.", "%(count)s prompts switched off.", "count"),
        is_enabled=False,
    )

    @admin.display(description=_("Arguments"))
    def takes(self, prompt: McpPrompt) -> str:
        """In the words of the server's own page."""
        return offer_of(prompt).facts


@admin.register(HealthCheck)
class HealthCheckAdmin(ReadOnly, OfServerAdmin):
    """How the servers answered; to read only."""

    manage_permission = Permission.MANAGE_SERVERS
    where_from = _(
        "Trellis looks now and then whether each server answers. Here you see when it did, and what came of it."
    )
    list_display = ("checked_at", "server", "is_ok", "latency", "error")
    list_filter = ("is_ok",)
    list_select_related = ("server",)
    fields = list_display
    readonly_fields = fields

    @admin.display(description=_("latency"), ordering="latency_ms")
    def latency(self, check: HealthCheck) -> str | None:
        return in_milliseconds(check.latency_ms)
