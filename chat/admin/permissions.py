"""Which tools run without asking whom."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from chat.services.permissions import tool_title, why_lapsed
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.models import ToolPermission
from mcp_servers.registry.consent.permissions import revoke_permission
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import ReadOnly, WorkspaceModelAdmin, actor_of
from workspaces.pages.row_actions import ConfirmQuestion, row_action
from workspaces.roles import Permission


@admin.register(ToolPermission)
class ToolPermissionAdmin(ReadOnly, WorkspaceModelAdmin):
    """What members always allow; whoever manages members can revoke it. In which chat stays theirs."""

    section = AdminSection.PEOPLE
    page_name = _("Allowed tools")
    where_from = _(
        "When a tool asks before it runs, a member can choose “Always”. From then on it runs for them without asking."
        " Here you see each such permission, and can revoke it."
    )
    manage_permission = Permission.MANAGE_MEMBERS
    actions = ("revoke",)
    list_display = ["user", "tool_name", "server", "where", "state", "created_at"]
    list_filter = ["created_at"]
    list_display_links = None
    search_fields = [
        *("user__name", "user__email", "tool__name", "tool__title", "tool__server__name"),
        "action_label",
    ]
    ordering = ["-created_at"]

    def get_queryset(self, request: HttpRequest) -> Any:
        """Without what asks somebody each time: that is theirs alone."""
        rows = super().get_queryset(request)
        return rows.filter(asks_always=False).select_related("tool__server", "workspace", "user")

    @admin.display(description=_("tool"), ordering="tool__name")
    def tool_name(self, row: ToolPermission) -> str:
        return tool_title(row) or show_hidden(row.tool.name)

    @admin.display(description=_("server"), ordering="tool__server__name")
    def server(self, row: ToolPermission) -> str:
        return row.tool.server.name

    @admin.display(description=_("where"))
    def where(self, row: ToolPermission) -> Promise:
        return _("one chat") if row.conversation_id else _("all their chats")

    @admin.display(description=_("state"))
    def state(self, row: ToolPermission) -> str:
        """Only where it is not as usual."""
        return why_lapsed(row)

    def row_name(self, row: ToolPermission) -> str:
        """Who, which tool and of which server."""
        return f"{row.user.email}, {self.tool_name(row)} ({row.tool.server.name})"

    @row_action(
        _("Revoke"),
        done=ngettext_lazy(
            "%(count)s permission revoked.", "%(count)s permissions revoked.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Revoke %(count)s permission?", "Revoke %(count)s permissions?", "count"
            ),
            consequence=_(
                "These tools ask these people again before the next call. They can allow it once more."
            ),
            verb=_("Revoke"),
        ),
        permissions=["view"],
    )
    def revoke(self, request: HttpRequest, row: ToolPermission) -> None:
        revoke_permission(permission=row, actor=actor_of(request))
