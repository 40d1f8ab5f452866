"""Hosted servers in the admin: to read and to uninstall, and what is still to be deleted at the provider."""

from __future__ import annotations

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mcp_servers.klavis import instances, removals
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.pages.admin.common import ReadOnlyAdmin, actor_of
from workspaces.pages.model_admin import telling


@admin.register(KlavisAccount)
class KlavisAccountAdmin(ReadOnlyAdmin):
    """The workspace's account; its key is never shown."""

    list_display = ("base_url", "dialect", "is_active", "checked_at", "problem")
    fields = (
        *("base_url", "dialect", "found_dialect", "is_active", "catalogue_read_at"),
        *("checked_at", "problem"),
    )
    readonly_fields = fields


@admin.register(KlavisInstance)
class KlavisInstanceAdmin(ReadOnlyAdmin):
    """Hosted instances of the workspace and of its people; never where they are."""

    list_display = ("title", "whose", "state", "is_read_only", "uses_rest", "last_checked_at")
    list_filter = ("state",)
    list_select_related = ("user", "workspace")
    fields = (
        *("title", "kind", "whose", "state", "reason", "is_read_only", "uses_rest"),
        *("server", "last_checked_at", "created_at"),
    )
    readonly_fields = fields
    actions = ("uninstall",)

    @admin.display(description=_("Whose"))
    def whose(self, instance: KlavisInstance) -> str:
        return instance.user.email if instance.user is not None else "The workspace's"

    @admin.action(description=_("Uninstall"))
    def uninstall(self, request: HttpRequest, queryset: models.QuerySet[KlavisInstance]) -> None:
        for instance in queryset.select_related("workspace"):
            with telling(request):
                instances.uninstall(instance=instance, actor=actor_of(request))


@admin.register(KlavisRemoval)
class KlavisRemovalAdmin(ReadOnlyAdmin):
    """Deletions that the provider has not confirmed."""

    list_display = ("label", "kind", "created_at", "attempts", "next_attempt_at", "last_error")
    fields = list_display
    readonly_fields = fields
    actions = ("give_up",)

    @admin.action(description=_("Give up"))
    def give_up(self, request: HttpRequest, queryset: models.QuerySet[KlavisRemoval]) -> None:
        for removal in queryset:
            with telling(request):
                removals.forget_removal(removal=removal, actor=actor_of(request))
