"""Resources and prompts over REST."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import django_filters
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response
from uuid_utils.compat import uuid7

from mcp_servers.client.values import Outcome, PromptMessage, PromptRequest, ResourceRequest
from mcp_servers.gate import get_prompt, read_resource
from mcp_servers.gate.access import for_manager
from mcp_servers.models import McpPrompt, McpResource
from mcp_servers.models.resources import MAX_URI_LENGTH
from mcp_servers.pages.api.common import TextMapField
from mcp_servers.registry import services
from mcp_servers.registry.rights import require_to_manage
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.database import wait_for
from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class ServerResourceOutput(serializers.ModelSerializer[McpResource]):
    """A resource, or a template for the addresses of many. The texts are the server's."""

    server_id = serializers.UUIDField(read_only=True)
    annotations = serializers.DictField(read_only=True)

    class Meta:
        model = McpResource
        fields = (
            *("id", "server_id", "uri", "is_template", "name", "title", "description"),
            *("mime_type", "size", "annotations", "is_enabled", "is_watched", "changed_at"),
            *("first_seen_at", "last_seen_at", "removed_at"),
        )
        read_only_fields = fields


class ServerPromptArgumentOutput(serializers.Serializer[Any]):
    """One argument of a prompt."""

    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # the protocol's own name


class ServerPromptOutput(serializers.ModelSerializer[McpPrompt]):
    """A prompt. The texts are the server's."""

    server_id = serializers.UUIDField(read_only=True)
    arguments = ServerPromptArgumentOutput(many=True, read_only=True)

    class Meta:
        model = McpPrompt
        fields = (
            *("id", "server_id", "name", "title", "description", "arguments", "is_enabled"),
            *("first_seen_at", "last_seen_at", "removed_at"),
        )
        read_only_fields = fields


class OfferSwitchInput(serializers.Serializer[Any]):
    """On or off."""

    is_enabled = serializers.BooleanField()


class ReadInput(serializers.Serializer[Any]):
    """Which address of a template is meant."""

    uri = serializers.CharField(
        max_length=MAX_URI_LENGTH,
        required=False,
        help_text="For a template: the address. A resource has its own.",
    )


class ReadOutput(serializers.Serializer[Any]):
    """What reading a resource came to."""

    outcome = serializers.ChoiceField(choices=[(one.value, one.value) for one in Outcome])
    content = serializers.SerializerMethodField()
    message = serializers.CharField()
    duration_ms = serializers.IntegerField()
    truncated = serializers.BooleanField()

    def get_content(self, outcome: Any) -> list[dict[str, Any]]:
        """The parts, as in a tool's result."""
        return [part.as_json() for part in outcome.content]


class FillInput(serializers.Serializer[Any]):
    """The prompt's arguments."""

    arguments = TextMapField(required=False)


class FilledMessageOutput(serializers.Serializer[Any]):
    """One message of a prompt."""

    role = serializers.CharField()
    content = serializers.SerializerMethodField()

    def get_content(self, message: PromptMessage) -> dict[str, Any]:
        """The one part that a prompt's message has, as in a tool's result."""
        return dict(message.content.as_json())


class ServerFilledPromptOutput(serializers.Serializer[Any]):
    """What fetching a prompt came to."""

    outcome = serializers.ChoiceField(choices=[(one.value, one.value) for one in Outcome])
    description = serializers.CharField()
    messages = FilledMessageOutput(many=True)
    message = serializers.CharField()
    duration_ms = serializers.IntegerField()


class OfferFilters(RowFilterSet):
    """What a list may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    is_enabled = TruthFilter()
    name = django_filters.CharFilter(max_length=256)


class OfferViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What resources and prompts have alike."""

    scopes = Scopes(read="servers:read", write="servers:write")
    filterset_class = OfferFilters
    orderings: ClassVar[Any] = ("-id", "name")

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().select_related("server__workspace")

    def _switch(self) -> Response:
        row = self.get_object()
        is_enabled = self.read(OfferSwitchInput)["is_enabled"]
        return self.answer(
            services.set_offer_enabled(offer=row, is_enabled=is_enabled, actor=self.actor)
        )


class ResourceViewSet(OfferViewSet):
    """Resources and templates of the workspace's servers."""

    model = McpResource
    serializer_class = ServerResourceOutput

    @extend_schema(request=OfferSwitchInput, responses=ServerResourceOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Let people attach it, or no longer."""
        return self._switch()

    @extend_schema(request=ReadInput, responses=ReadOutput)
    @action(detail=True, methods=["post"])
    def read_content(self, request: Request, pk: str) -> Response:
        """Read it once, through the gate."""
        row = self.get_object()
        require_to_manage(self.actor, row.server)
        uri = self.read(ReadInput).get("uri")
        if row.is_template != bool(uri):
            raise InvalidInput(
                fields={"uri": [_("Give an address for a template, and none for a resource.")]}
            )
        wanted = ResourceRequest(
            call_id=uuid7(),
            workspace_id=self.workspace.pk,
            server_id=row.server_id,
            uri=uri or row.uri,
            actor=self.actor,
        )
        work = partial(read_resource, wanted)
        outcome = wait_for(for_manager, work, self.actor, row.server_id)
        return Response(ReadOutput(outcome).data)


class PromptViewSet(OfferViewSet):
    """Prompts of the workspace's servers."""

    model = McpPrompt
    serializer_class = ServerPromptOutput

    @extend_schema(request=OfferSwitchInput, responses=ServerPromptOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Let people use it, or no longer."""
        return self._switch()

    @extend_schema(request=FillInput, responses=ServerFilledPromptOutput)
    @action(detail=True, methods=["post"])
    def fill(self, request: Request, pk: str) -> Response:
        """Fetch it with arguments, through the gate."""
        row = self.get_object()
        require_to_manage(self.actor, row.server)
        wanted = PromptRequest(
            call_id=uuid7(),
            workspace_id=self.workspace.pk,
            prompt_id=row.pk,
            arguments=self.read(FillInput).get("arguments", {}),
            actor=self.actor,
        )
        work = partial(get_prompt, wanted)
        outcome = wait_for(for_manager, work, self.actor, row.server_id)
        return Response(ServerFilledPromptOutput(outcome).data)
