"""Rules on actions in the admin: to read and to take back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import ActionRule
from mcp_servers.pages.admin.common import ReadOnlyAdmin, actor_of
from mcp_servers.registry.services.actions import remove_action_rule
from workspaces.pages.admin_sections import Section
from workspaces.pages.model_admin import telling


@admin.register(ActionRule)
class ActionRuleAdmin(ReadOnlyAdmin):
    """Rules on actions that a hosted server's tool runs by name."""

    section = Section.RULES
    list_display = ("action", "service", "category", "server", "effect")
    list_filter = ("effect",)
    list_select_related = ("server",)
    fields = ("server", "service", "category", "action", "effect")
    readonly_fields = fields
    actions = ("take_back",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).filter(server__owner__isnull=True)

    @admin.action(description=_("Remove the selected rules"))
    def take_back(self, request: HttpRequest, queryset: models.QuerySet[ActionRule]) -> None:
        for rule in queryset.select_related("server__workspace"):
            with telling(request):
                remove_action_rule(rule=rule, actor=actor_of(request))
