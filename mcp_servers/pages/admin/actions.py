"""Rules on actions in the admin: to read and to take back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from mcp_servers.models import ActionRule
from mcp_servers.pages.admin.common import ReadOnlyAdmin
from mcp_servers.registry.services.actions import remove_action_rule
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import actor_of
from workspaces.pages.row_actions import ConfirmQuestion, row_action


@admin.register(ActionRule)
class ActionRuleAdmin(ReadOnlyAdmin):
    """Rules on actions that a hosted server's tool runs by name."""

    section = AdminSection.RULES
    where_from = _(
        "They say which actions of a server at Klavis run, ask first or are blocked. You make them on that server's page."
    )
    list_display = ("action", "service", "category", "server", "effect")
    list_filter = ("effect",)
    list_select_related = ("server__workspace",)
    fields = ("server", "service", "category", "action", "effect")
    readonly_fields = fields
    actions = ("take_back",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).filter(server__owner__isnull=True)

    @row_action(
        _("Remove"),
        done=ngettext_lazy("%(count)s rule removed.", "%(count)s rules removed.", "count"),
        question=ConfirmQuestion(
            asked=ngettext_lazy("Remove %(count)s rule?", "Remove %(count)s rules?", "count"),
            consequence=_("What these rules say of actions no longer holds, from the next call."),
            verb=_("Remove"),
        ),
    )
    def take_back(self, request: HttpRequest, row: ActionRule) -> None:
        remove_action_rule(rule=row, actor=actor_of(request))
