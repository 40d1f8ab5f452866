"""Who shares which chats with whom."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.models import Audience, SharedChat
from chat.services.sharing import stop_sharing
from workspaces.pages.admin_sections import Section
from workspaces.pages.model_admin import WorkspaceModelAdmin, telling
from workspaces.roles import Permission


@admin.register(SharedChat)
class SharedChatAdmin(WorkspaceModelAdmin):
    """What is shared in the workspace, by whom and with whom; an admin can stop it. What the chats say stays out of it."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    actions = ("stop",)
    list_display = ["owner", "audience", "chosen", "is_public", "created_at", "expires_at"]
    list_filter = ["audience", "created_at", "expires_at"]
    list_select_related = ["owner"]
    list_display_links = None
    search_fields = ["owner__name", "owner__email"]
    ordering = ["-created_at"]
    fields = ["owner", "audience", "with_files", "with_calls", "created_at", "expires_at"]

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request).filter(conversation__deleted_at=None)
        return rows.annotate(chosen_count=Count("readers"))

    @admin.display(description=_("chosen people"), ordering="chosen_count")
    def chosen(self, row: Any) -> int | None:
        return row.chosen_count if row.audience == Audience.PEOPLE.value else None

    @admin.display(description=_("without signing in"), boolean=True, ordering="audience")
    def is_public(self, row: SharedChat) -> bool:
        return row.audience == Audience.LINK.value

    @admin.action(description=_("Stop sharing the selected chats"), permissions=["delete"])
    def stop(self, request: HttpRequest, queryset: Any) -> None:
        with telling(request):
            for shared in queryset:
                stop_sharing(shared=shared, actor=cast("Any", request).actor)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with telling(request):
            stop_sharing(shared=obj, actor=cast("Any", request).actor)
