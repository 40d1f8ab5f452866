"""Hosted servers in the admin: to read and to uninstall, and what is still to be deleted at the provider."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.klavis import installing, removals
from mcp_servers.klavis.models import KlavisAccount, KlavisInstance, KlavisRemoval
from mcp_servers.pages.admin.common import ReadOnlyAdmin
from workspaces.pages.model_admin import actor_of
from workspaces.pages.row_actions import ConfirmQuestion, row_action


@admin.register(KlavisAccount)
class KlavisAccountAdmin(ReadOnlyAdmin):
    """The workspace's account; its key is never shown."""

    where_from = _(
        "Klavis hosts MCP servers. Connect an account under “Servers”, “Add a server”, “Klavis”."
    )
    list_display = ("base_url", "dialect", "is_active", "checked_at", "problem")
    fields = (
        *("base_url", "dialect", "found_dialect", "is_active", "catalogue_read_at"),
        *("checked_at", "problem"),
    )
    readonly_fields = fields


@admin.register(KlavisInstance)
class KlavisInstanceAdmin(ReadOnlyAdmin):
    """Hosted instances of the workspace and of its people; never where they are."""

    where_from = _(
        "Servers that Klavis hosts for this workspace. Install them under “Servers”, “Add a server”, “Klavis”."
    )
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
        return instance.user.email if instance.user is not None else gettext("The workspace's")

    def row_name(self, row: KlavisInstance) -> str:
        """What it is, and whose."""
        return f"{row.title} ({row.user.email})" if row.user is not None else row.title

    @row_action(
        _("Uninstall"),
        done=ngettext_lazy(
            "%(count)s hosted server uninstalled.", "%(count)s hosted servers uninstalled.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Uninstall %(count)s hosted server?", "Uninstall %(count)s hosted servers?", "count"
            ),
            consequence=_(
                "Its server and tools are deleted here at once, and at the provider too, with the sign-ins that it has."
                " This cannot be undone."
            ),
            verb=_("Uninstall"),
        ),
    )
    def uninstall(self, request: HttpRequest, row: KlavisInstance) -> None:
        installing.uninstall(instance=row, actor=actor_of(request))


@admin.register(KlavisRemoval)
class KlavisRemovalAdmin(ReadOnlyAdmin):
    """Deletions that the provider has not confirmed."""

    where_from = _(
        "What was removed here, and what Klavis has not deleted yet. Trellis tries again by itself."
    )
    list_display = ("label", "kind", "created_at", "attempts", "next_attempt_at", "last_error")
    fields = list_display
    readonly_fields = fields
    actions = ("give_up",)

    @row_action(
        _("Give up"),
        done=ngettext_lazy(
            "%(count)s deletion given up.", "%(count)s deletions given up.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Give up %(count)s deletion?", "Give up %(count)s deletions?", "count"
            ),
            consequence=_(
                "Trellis no longer tries to delete this at the provider, and forgets where it is. Whatever is left there"
                " you delete at the provider yourself."
            ),
            verb=_("Give up"),
        ),
    )
    def give_up(self, request: HttpRequest, row: KlavisRemoval) -> None:
        removals.forget_removal(removal=row, actor=actor_of(request))
