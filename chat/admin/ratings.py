"""What people think of answers."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.models import Turn
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import ReadOnly, WorkspaceModelAdmin
from workspaces.roles import Permission


@admin.register(Turn)
class RatedAnswerAdmin(ReadOnly, WorkspaceModelAdmin):
    """What people think of answers: how many of which bud and model are good, and why some are not.

    What was asked and answered stays theirs.
    """

    section = AdminSection.BUDS
    page_name = _("Ratings of answers")
    where_from = _(
        "People rate answers with the thumbs below them. Here you see each rating, with the reason that they gave."
    )
    manage_permission = Permission.MANAGE_BUDS
    ordering = ["-rated_at"]
    list_display = ["rated_at", "rating", "rating_reason", "bud", "model", "asked_by"]
    list_filter = ["rating", "rated_at", "model"]
    list_select_related = ["conversation__bud", "mentioned_bud", "asked_by"]
    list_display_links = None
    search_fields = ["rating_reason", "model"]
    show_full_result_count = False
    fields = ["rated_at", "rating", "rating_reason", "model"]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).exclude(rating="")

    @admin.display(description=_("Bud"), ordering="conversation__bud__name")
    def bud(self, turn: Turn) -> str:
        return turn.answering_bud.name
