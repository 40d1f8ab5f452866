"""The catalogue of well-known servers over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.api.common import StrictSerializer
from mcp_servers.known import services
from mcp_servers.known.listing import entry_of, list_entries
from mcp_servers.known.values import Audience, AuthKind, CatalogueEntry
from mcp_servers.models import McpServer
from workspaces.api import Scopes, WorkspaceViewSet

if TYPE_CHECKING:
    from rest_framework.request import Request


class InstalledOutput(serializers.Serializer[Any]):
    """A server that came from an entry."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    is_own = serializers.BooleanField(help_text="The caller's own, and not the workspace's.")
    can_uninstall = serializers.BooleanField()


class EntryOutput(serializers.Serializer[Any]):
    """One server on offer."""

    source = serializers.CharField()  # type: ignore[assignment]  # the name on the wire
    slug = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    categories = serializers.ListField(child=serializers.CharField())
    is_program = serializers.BooleanField()
    where = serializers.CharField(help_text="A host; empty for a program.")
    auth = serializers.ChoiceField(choices=[one.value for one in AuthKind])
    provider = serializers.CharField(help_text="Who runs it in between, if somebody does.")
    notes = serializers.CharField()
    docs_url = serializers.CharField()
    problem = serializers.CharField(help_text="Why it cannot be installed here; empty if it can.")
    needs_secret = serializers.CharField(help_text="What `secret` has to hold; empty: nothing.")
    audience = serializers.ChoiceField(choices=[one.value for one in Audience])
    installed = InstalledOutput(many=True)


class EntryInput(StrictSerializer):
    """Which entry is meant."""

    source = serializers.CharField(max_length=20)  # type: ignore[assignment]  # the name on the wire
    slug = serializers.CharField(max_length=100)


class InstallInput(EntryInput):
    """What to install, and for whom."""

    for_workspace = serializers.BooleanField(
        help_text="For everybody, which administrators may; else for the caller alone."
    )
    secret = serializers.CharField(
        max_length=8000, required=False, write_only=True, allow_blank=True
    )


class UninstallInput(EntryInput):
    """What to remove."""

    server_id = serializers.UUIDField()


class AudienceInput(EntryInput):
    """Who may install an entry."""

    is_for_everybody = serializers.BooleanField()


class InstallingOutput(serializers.Serializer[Any]):
    """What came of an install."""

    server_id = serializers.UUIDField(allow_null=True)
    url = serializers.CharField(
        help_text="The page where a person goes on: the sign-in, or the server."
    )


class CatalogueViewSet(WorkspaceViewSet):
    """Well-known servers: administrators see all, members those that were opened to them."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # type: ignore[assignment]  # a short list, given whole
    serializer_class = EntryOutput
    parameters: ClassVar[Any] = {"list": ("search", "category")}

    @extend_schema(
        parameters=[OpenApiParameter("search", str), OpenApiParameter("category", str)],
        responses=EntryOutput(many=True),
        filters=False,
    )
    def list(self, request: Request) -> Response:
        """The entries, searched by words and narrowed by category."""
        listing = list_entries(
            workspace=self.workspace,
            actor=self.actor,
            search=request.query_params.get("search", ""),
            category=request.query_params.get("category", ""),
        )
        return Response(EntryOutput(listing.entries, many=True).data)

    @extend_schema(request=InstallInput, responses={201: InstallingOutput})
    @action(detail=False, methods=["post"])
    def install(self, request: Request) -> Response:
        """Install an entry. One that people sign in to needs a person with a browser for that."""
        values = self.read(InstallInput)
        done = services.install_entry(
            workspace=self.workspace,
            source=values["source"],
            slug=values["slug"],
            actor=self.actor,
            for_workspace=values["for_workspace"],
            secret=values.get("secret", ""),
        )
        told = {"server_id": done.server.pk if done.server is not None else None, "url": done.url}
        return Response(InstallingOutput(told).data, status=201)

    @extend_schema(request=UninstallInput, responses={204: None})
    @action(detail=False, methods=["post"])
    def uninstall(self, request: Request) -> Response:
        """Remove a server that came from an entry."""
        values = self.read(UninstallInput)
        services.uninstall_entry(workspace=self.workspace, actor=self.actor, **values)
        return Response(status=204)

    @extend_schema(request=AudienceInput, responses=EntryOutput)
    @action(detail=False, methods=["post"])
    def audience(self, request: Request) -> Response:
        """Say whether members may install an entry for themselves."""
        values = self.read(AudienceInput)
        services.set_audience(workspace=self.workspace, actor=self.actor, **values)
        entry: CatalogueEntry = entry_of(
            workspace=self.workspace,
            actor=self.actor,
            source=values["source"],
            slug=values["slug"],
        )
        return Response(EntryOutput(entry).data)
