"""The catalogue of well-known servers over REST."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.models import McpServer
from mcp_servers.pages.api.common import WhereUsedInput, where_used
from mcp_servers.registry.catalogue import services
from mcp_servers.registry.catalogue.listing import entry_of, list_entries
from mcp_servers.registry.catalogue.values import AuthKind, CatalogueEntry, InstallableBy
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from rest_framework.request import Request


class CatalogueInstalledOutput(serializers.Serializer[Any]):
    """A server that came from an entry."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    is_own = serializers.BooleanField(help_text="The caller's own, and not the workspace's.")
    can_uninstall = serializers.BooleanField()


class CatalogueEntryOutput(serializers.Serializer[Any]):
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
    audience = serializers.ChoiceField(choices=[one.value for one in InstallableBy])
    installed = CatalogueInstalledOutput(many=True)


class CatalogueEntryInput(serializers.Serializer[Any]):
    """Which entry is meant."""

    source = serializers.CharField(max_length=20)  # type: ignore[assignment]  # the name on the wire
    slug = serializers.CharField(max_length=100)


class CatalogueInstallInput(CatalogueEntryInput, WhereUsedInput):
    """What to install, and for whom."""

    for_workspace = serializers.BooleanField(
        help_text="For everybody, which administrators may; else for the caller alone."
    )
    secret = serializers.CharField(
        max_length=8000, required=False, write_only=True, allow_blank=True
    )


class CatalogueUninstallInput(CatalogueEntryInput):
    """What to remove."""

    server_id = serializers.UUIDField()


class AudienceInput(CatalogueEntryInput):
    """Who may install an entry."""

    is_for_everybody = serializers.BooleanField()


class InstallingOutput(serializers.Serializer[Any]):
    """What came of an install."""

    server_id = serializers.UUIDField(allow_null=True)
    url = serializers.CharField(
        help_text="The page where a person goes on: the sign-in, or the server."
    )


@contextmanager
def _named_in_the_body() -> Iterator[None]:
    """What a body names and is not there is a fault of the body, and no missing address."""
    try:
        yield
    except NotFound as error:
        raise InvalidInput(
            fields={"slug": [_("There is no such catalogue entry or server here.")]}
        ) from error


class CatalogueViewSet(WorkspaceViewSet):
    """Well-known servers: administrators see all, members those that were opened to them."""

    model = McpServer
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # a short list, given whole
    serializer_class = CatalogueEntryOutput
    parameters: ClassVar[Any] = {"list": ("search", "category")}

    @extend_schema(
        parameters=[OpenApiParameter("search", str), OpenApiParameter("category", str)],
        responses=CatalogueEntryOutput(many=True),
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
        return Response(CatalogueEntryOutput(listing.entries, many=True).data)

    @extend_schema(request=CatalogueInstallInput, responses={201: InstallingOutput})
    @action(detail=False, methods=["post"])
    def install(self, request: Request) -> Response:
        """Install an entry. One that people sign in to needs a person with a browser for that."""
        values = self.read(CatalogueInstallInput)
        with _named_in_the_body():
            done = services.install_entry(
                workspace=self.workspace,
                source=values["source"],
                slug=values["slug"],
                actor=self.actor,
                for_workspace=values["for_workspace"],
                secret=values.get("secret", ""),
                where=where_used(values),
            )
        done_in_json = {
            "server_id": done.server.pk if done.server is not None else None,
            "url": done.url,
        }
        return Response(InstallingOutput(done_in_json).data, status=201)

    @extend_schema(request=CatalogueUninstallInput, responses={204: None})
    @action(detail=False, methods=["post"])
    def uninstall(self, request: Request) -> Response:
        """Remove a server that came from an entry."""
        values = self.read(CatalogueUninstallInput)
        with _named_in_the_body():
            services.uninstall_entry(workspace=self.workspace, actor=self.actor, **values)
        return Response(status=204)

    @extend_schema(request=AudienceInput, responses=CatalogueEntryOutput)
    @action(detail=False, methods=["post"])
    def audience(self, request: Request) -> Response:
        """Say whether members may install an entry for themselves."""
        values = self.read(AudienceInput)
        with _named_in_the_body():
            services.set_audience(workspace=self.workspace, actor=self.actor, **values)
            entry: CatalogueEntry = entry_of(
                workspace=self.workspace,
                actor=self.actor,
                source=values["source"],
                slug=values["slug"],
            )
        return Response(CatalogueEntryOutput(entry).data)
