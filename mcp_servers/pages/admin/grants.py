"""Connected accounts in the admin: who, since when, with which scopes; to read and to disconnect."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mcp_servers.models import OAuthGrant
from mcp_servers.oauth.services import revoke_grant
from mcp_servers.pages.admin.common import OfServerAdmin, actor_of
from workspaces.pages.model_admin import telling
from workspaces.roles import Permission


@admin.register(OAuthGrant)
class OAuthGrantAdmin(OfServerAdmin):
    """Accounts at the workspace's servers. What was granted is never shown."""

    manage_permission = Permission.MANAGE_SERVERS
    list_display = ("server", "whose", "account", "granted_at", "last_used_at", "is_connected")
    list_select_related = ("server", "user")
    search_fields = ("server__name", "user__email", "account")
    fields = (
        *("server", "whose", "account", "granted_by", "issuer", "scope", "granted_at"),
        *("refreshed_at", "last_used_at", "expires_at", "is_connected", "lost_reason"),
    )
    readonly_fields = fields
    actions = ("disconnect",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("Whose"))
    def whose(self, grant: OAuthGrant) -> str:
        return grant.user.email if grant.user is not None else "The workspace's account"

    @admin.display(description=_("Connected"), boolean=True)
    def is_connected(self, grant: OAuthGrant) -> bool:
        return not grant.lost_reason

    @admin.action(description=_("Disconnect"))
    def disconnect(self, request: HttpRequest, queryset: models.QuerySet[OAuthGrant]) -> None:
        for grant in queryset.select_related("server__workspace", "client", "user"):
            with telling(request):
                revoke_grant(grant=grant, actor=actor_of(request))
