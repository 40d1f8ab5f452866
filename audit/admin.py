"""The log in the admin: to read only. Bodies are on the log's own page, where reading them is recorded."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit.models import AuditEntry
from workspaces.admin_sections import Section
from workspaces.model_admin import WorkspaceModelAdmin
from workspaces.roles import Permission


@admin.register(AuditEntry)
class AuditEntryAdmin(WorkspaceModelAdmin):
    """Entries of the current workspace, without arguments and results."""

    section = Section.LOG
    page_name = _("Entries, all fields")
    manage_permission = Permission.VIEW_AUDIT
    list_display = ["created_at", "action", "actor_label", "server_name", "tool_name", "outcome"]
    list_filter = ["action", "outcome", "refused_by", "source"]
    search_fields = ["actor_label", "server_name", "tool_name"]
    ordering = ["-id"]
    show_full_result_count = False
    exclude = ["arguments_preview", "result_preview"]
    actions = None
    offers_export = False  # the log has exports of its own, for auditors

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Entries are written by what happens, never by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes the log."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes from the log."""
        return False
