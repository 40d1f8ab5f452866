"""Who shares which chats with whom."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from chat.models import ShareAudience, SharedChat
from chat.services.sharing import stop_sharing
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import MadeElsewhere, WorkspaceModelAdmin, actor_of, telling
from workspaces.pages.row_actions import ConfirmQuestion, row_action
from workspaces.roles import Permission
from workspaces.words.formats import moment


@admin.register(SharedChat)
class SharedChatAdmin(MadeElsewhere, WorkspaceModelAdmin):
    """What is shared in the workspace, by whom and with whom; an admin can stop it. What the chats say stays out of it."""

    section = AdminSection.PEOPLE
    deletion_note = _(
        "This ends the sharing alone: nobody but its owner can read the chat any more, and its link no longer works. The chat"
        " itself stays."
    )
    where_from = _(
        "Members share chats with “Share”, in the chat. Here you see who can read each one, and can end it."
    )
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
        return row.chosen_count if row.audience == ShareAudience.PEOPLE.value else None

    @admin.display(description=_("without signing in"), boolean=True, ordering="audience")
    def is_public(self, row: SharedChat) -> bool:
        return row.audience == ShareAudience.LINK.value

    def row_name(self, row: SharedChat) -> str:
        """Who shares it, with whom and since when: what it says stays theirs."""
        return f"{row.owner.email}, {row.get_audience_display()}, {moment(row.created_at)}"

    @row_action(
        _("Stop sharing"),
        done=ngettext_lazy(
            "%(count)s chat is no longer shared.", "%(count)s chats are no longer shared.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Stop sharing %(count)s chat?", "Stop sharing %(count)s chats?", "count"
            ),
            consequence=_(
                "Nobody but its owner can read it any more, and its link no longer works. The chat itself stays."
            ),
            verb=_("Stop sharing"),
        ),
        permissions=["delete"],
    )
    def stop(self, request: HttpRequest, row: SharedChat) -> None:
        stop_sharing(shared=row, actor=actor_of(request))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with telling(request):
            stop_sharing(shared=obj, actor=actor_of(request))
