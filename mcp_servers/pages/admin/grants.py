"""Connected accounts in the admin: who, since when, with which scopes; to read and to disconnect."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import OAuthGrant
from mcp_servers.oauth.services import revoke_grant
from mcp_servers.pages.admin.common import OfServerAdmin
from workspaces.pages.model_admin import ReadOnly, actor_of
from workspaces.pages.row_actions import ConfirmQuestion, row_action
from workspaces.roles import Permission


@admin.register(OAuthGrant)
class OAuthGrantAdmin(ReadOnly, OfServerAdmin):
    """Accounts at the workspace's servers. What was granted is never shown."""

    manage_permission = Permission.MANAGE_SERVERS
    where_from = _(
        "People connect their accounts where a server asks them to sign in. Here you see each one, and can disconnect it."
    )
    list_display = ("server", "whose", "account", "granted_at", "last_used_at", "is_connected")
    list_select_related = ("server__workspace", "client", "user")
    search_fields = ("server__name", "user__email", "account")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("server", "whose", "account", "is_connected", "lost_reason"),
                    *("granted_at", "last_used_at"),
                )
            },
        ),
        (
            _("Advanced"),
            {
                "classes": ("collapse",),
                "fields": ("granted_by", "issuer", "scope", "refreshed_at", "expires_at"),
            },
        ),
    )
    readonly_fields = (
        *("server", "whose", "account", "granted_by", "issuer", "scope", "granted_at"),
        *("refreshed_at", "last_used_at", "expires_at", "is_connected", "lost_reason"),
    )
    actions = ("disconnect",)

    @admin.display(description=_("Whose"))
    def whose(self, grant: OAuthGrant) -> str:
        return grant.user.email if grant.user is not None else gettext("The workspace's account")

    @admin.display(description=_("Connected"), boolean=True)
    def is_connected(self, grant: OAuthGrant) -> bool:
        return not grant.lost_reason

    def row_name(self, row: OAuthGrant) -> str:
        """The server, and whose account."""
        return (
            f"{row.server.name}: {row.user.email if row.user is not None else row.account or '–'}"
        )

    @row_action(
        _("Disconnect"),
        done=ngettext_lazy(
            "%(count)s account disconnected.", "%(count)s accounts disconnected.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Disconnect %(count)s account?", "Disconnect %(count)s accounts?", "count"
            ),
            consequence=_(
                "Trellis ends the sign-in at the server and deletes what it keeps of it. Tools that need the account"
                " stop until somebody signs in again."
            ),
            verb=_("Disconnect"),
        ),
        is_atomic=False,
    )
    def disconnect(self, request: HttpRequest, row: OAuthGrant) -> None:
        revoke_grant(grant=row, actor=actor_of(request))
