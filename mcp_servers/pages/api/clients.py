"""Clients that people signed in with, over REST: a person's own, and for administrators those of all members."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mcp_servers.endpoint.sign_in.ending import end_sign_in
from mcp_servers.endpoint.sign_in.listing import all_sign_ins, own_sign_ins
from mcp_servers.models import ClientSignIn
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class ClientSignInOutput(serializers.ModelSerializer[ClientSignIn]):
    """A client that somebody let in, without its tokens."""

    name = serializers.CharField(source="client_name", read_only=True)
    user = serializers.EmailField(source="user.email", read_only=True)
    returns_to = serializers.CharField(
        source="redirect_host", read_only=True, help_text="Where its code went."
    )
    scopes = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = ClientSignIn
        fields = (
            *("id", "name", "user", "returns_to", "scopes"),
            *("created_at", "last_used_at", "expires_at"),
        )
        read_only_fields = fields


class OwnClientViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The MCP clients that the caller let in here. Takes a browser session."""

    model = ClientSignIn
    serializer_class = ClientSignInOutput
    orderings: ClassVar[Any] = ("-created_at",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Nobody sees those of others here, not even the platform's owner."""
        return own_sign_ins(self.workspace, self.person)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Sign a client out at once."""
        end_sign_in(sign_in=self.get_object(), actor=self.actor)
        return Response(status=204)


class MemberClientViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The MCP clients that members let in, for those who manage members."""

    model = ClientSignIn
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = ClientSignInOutput
    orderings: ClassVar[Any] = ("-created_at",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        return all_sign_ins(self.workspace, actor=self.actor)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Sign a member's client out at once."""
        end_sign_in(sign_in=self.get_object(), actor=self.actor)
        return Response(status=204)
