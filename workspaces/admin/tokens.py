"""API tokens of people in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from workspaces.models import ApiToken
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import MadeElsewhere, WorkspaceModelAdmin, actor_of, telling
from workspaces.pages.row_actions import ConfirmQuestion, row_action
from workspaces.people.tokens import MCP_SCOPES, PLATFORM_SCOPES, SCOPES, revoke_token
from workspaces.roles import Permission


@admin.register(ApiToken)
class ApiTokenAdmin(MadeElsewhere, WorkspaceModelAdmin):
    """Which keys to the API exist here; an admin can end one, but never read or make one."""

    section = AdminSection.PEOPLE
    deletion_note = _(
        "Programs that use it are refused from the next request on. This cannot be undone: its owner makes a new one."
    )
    where_from = _(
        "Members make tokens for programs in their account, under “API tokens”. Here you see each one, and can revoke it."
    )
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["name", "user", "hint", "expires_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    fields = ["name", "user", "hint", "allowed", "expires_at", "last_used_at"]
    readonly_fields = ["allowed"]
    actions = ["revoke"]

    def row_name(self, row: ApiToken) -> str:
        """The token, how it begins, and whose it is."""
        return f"{row.name} ({row.hint}…, {row.user.email})"

    @admin.display(description=_("What it allows"))
    def allowed(self, token: ApiToken) -> str:
        """Each scope in the words with which its owner chose it."""
        known = SCOPES | PLATFORM_SCOPES | MCP_SCOPES
        lines = ((gettext(known.get(one, one)),) for one in token.scopes)
        return format_html_join("", "{}<br>", lines)

    @row_action(
        _("Revoke"),
        done=ngettext_lazy("%(count)s token revoked.", "%(count)s tokens revoked.", "count"),
        question=ConfirmQuestion(
            asked=ngettext_lazy("Revoke %(count)s token?", "Revoke %(count)s tokens?", "count"),
            consequence=_(
                "Programs that use them are refused from the next request on. This cannot be undone: their owners make new"
                " ones."
            ),
            verb=_("Revoke"),
        ),
        permissions=["delete"],
    )
    def revoke(self, request: HttpRequest, row: ApiToken) -> None:
        revoke_token(token=row, actor=actor_of(request))

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        with telling(request):
            revoke_token(token=obj, actor=actor_of(request))
