"""Connected accounts over REST; never a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from mcp_servers.models import OAuthGrant
from mcp_servers.oauth.services import revoke_grant
from mcp_servers.pages.cards import accounts_of
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from rest_framework.request import Request


class AccountOutput(serializers.Serializer[Any]):
    """One account at one server."""

    id = serializers.UUIDField(source="grant_id")
    server_id = serializers.UUIDField()
    server_name = serializers.CharField()
    host = serializers.CharField()
    is_shared = serializers.BooleanField(help_text="The workspace's account, and nobody's own.")
    state = serializers.ChoiceField(choices=["connected", "lost"])
    reason = serializers.CharField(help_text="Why it no longer serves; empty while it does.")
    person = serializers.CharField(
        help_text="Whose it is, by e-mail address; of a shared one: who connected it."
    )
    account = serializers.CharField(help_text="Who that is over there, if the issuer says.")
    scopes = serializers.ListField(child=serializers.CharField())
    granted_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When the present access runs out; it may renew itself."
    )


class ConnectionViewSet(WorkspaceViewSet):
    """The caller's connected accounts, and for whoever manages servers also the workspace's."""

    model = OAuthGrant
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # a short list, given whole
    serializer_class = AccountOutput

    @extend_schema(responses=AccountOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """Every account, whether or not it still serves."""
        accounts = accounts_of(workspace=self.workspace, user=self.person, actor=self.actor)
        connected = [one for one in accounts if one.grant_id is not None]
        return Response(AccountOutput(connected, many=True).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Disconnect an account: your own, or, if you manage servers, anybody's at a server of the workspace."""
        mine = Q(user=self.person)
        manages = has_permission(
            self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
        )
        rows = OAuthGrant.objects.for_workspace(self.workspace)
        rows = rows.filter(mine | Q(server__owner__isnull=True) if manages else mine)
        grant = rows.select_related("server__workspace", "client", "user").fetch(pk)
        revoke_grant(grant=grant, actor=self.actor)
        return Response(status=204)
