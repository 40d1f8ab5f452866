"""Tools over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

import django_filters
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.client.errors import ApprovalMissing
from mcp_servers.client.values import Outcome, ToolCallOutcome
from mcp_servers.gate import tester
from mcp_servers.models import ApprovalOverride, McpTool
from mcp_servers.registry import services
from mcp_servers.registry.discovery import listed_for
from mcp_servers.registry.services.tools import MAX_CACHE_SECONDS
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.api.idempotency import departure_of_once

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class ToolOutput(serializers.ModelSerializer[McpTool]):
    """A tool as it was last seen."""

    server_id = serializers.UUIDField(read_only=True)
    annotations = serializers.SerializerMethodField()
    input_schema = serializers.DictField(read_only=True)
    output_schema = serializers.DictField(read_only=True, allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField(), read_only=True)
    is_removed = serializers.BooleanField(read_only=True)
    is_quarantined = serializers.BooleanField(read_only=True)

    class Meta:
        model = McpTool
        fields = (
            *(
                "id",
                "server_id",
                "name",
                "title",
                "description",
                "input_schema",
                "output_schema",
                "annotations",
            ),
            *(
                "is_enabled",
                "approval_override",
                "definition_hash",
                "is_quarantined",
                "is_removed",
                "problem",
                "output_problem",
                "warnings",
                "renamed_from",
                "task_support",
                "cache_seconds",
            ),
            *("first_seen_at", "last_seen_at", "removed_at"),
        )
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.BooleanField(allow_null=True)))
    def get_annotations(self, tool: McpTool) -> dict[str, bool | None]:
        """What the server says about the tool."""
        return tool.typed_annotations.as_json()


class ToolInput(serializers.Serializer[Any]):
    """What may be changed about a tool."""

    is_enabled = serializers.BooleanField(required=False)
    approval_override = serializers.ChoiceField(choices=ApprovalOverride.choices, required=False)
    cache_seconds = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MAX_CACHE_SECONDS,
        help_text="Only read-only tools of a trusted server can be cached.",
    )


class AcceptInput(serializers.Serializer[Any]):
    """Which definition was looked at."""

    definition_hash = serializers.RegexField(r"^[0-9a-f]{64}$")


class TryInput(serializers.Serializer[Any]):
    """One call."""

    # A field called "arguments" is what a tool takes; nothing of it becomes a program's argument.
    arguments = serializers.DictField(required=False)
    confirm = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Yes to exactly this call, where policy asks first.",
    )


class OutcomeOutput(serializers.Serializer[Any]):
    """How a call ended."""

    outcome = serializers.ChoiceField(choices=[(one.value, one.value) for one in Outcome])
    is_error = serializers.BooleanField()
    content = serializers.ListField(child=serializers.DictField(), source="content_as_json")
    structured = serializers.JSONField(allow_null=True)
    message = serializers.CharField()
    duration_ms = serializers.IntegerField()
    truncated = serializers.BooleanField()


def outcome_in_json(outcome: ToolCallOutcome) -> dict[str, Any]:
    """An outcome as `OutcomeOutput` describes it; its values are plain already, and need no walk through fields."""
    return {
        "outcome": outcome.outcome.value,
        "is_error": outcome.is_error,
        "content": outcome.content_as_json(),
        "structured": outcome.structured,
        "message": outcome.message,
        "duration_ms": outcome.duration_ms,
        "truncated": outcome.truncated,
    }


class ToolFilters(RowFilterSet):
    """What a list of tools may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    is_enabled = TruthFilter()
    name = django_filters.CharFilter(max_length=256)


class ToolViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Tools of the workspace's servers."""

    model = McpTool
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = ToolOutput
    filterset_class = ToolFilters
    orderings: ClassVar[Any] = ("name", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those that the caller may see, in the form in which their account was shown them."""
        rows = super().rows().select_related("server__workspace")
        return rows.filter(listed_for(self.actor, self.workspace.pk))

    @extend_schema(request=ToolInput, responses=ToolOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Switch a tool on or off, or say whether it asks first."""
        tool: McpTool = self.get_object()
        values = self.read(ToolInput, partial=True)
        if "is_enabled" in values:
            tool = services.set_tool_enabled(
                tool=tool, is_enabled=values["is_enabled"], actor=self.actor
            )
        if "approval_override" in values:
            override = ApprovalOverride(values["approval_override"])
            tool = services.set_approval_override(tool=tool, override=override, actor=self.actor)
        if "cache_seconds" in values:
            tool = services.set_tool_cache(
                tool=tool, seconds=values["cache_seconds"], actor=self.actor
            )
        return self.answer(tool)

    @extend_schema(request=AcceptInput, responses=ToolOutput)
    @action(detail=True, methods=["post"])
    def accept(self, request: Request, pk: str) -> Response:
        """Accept the definition that was looked at."""
        tool = self.get_object()
        seen = self.read(AcceptInput)["definition_hash"]
        return self.answer(services.accept_definition(tool=tool, actor=self.actor, seen_hash=seen))

    @extend_schema(request=TryInput, responses=OutcomeOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Call the tool once, through the gate.

        If you leave before it has answered, Trellis stops the call, unless you sent an `Idempotency-Key`.
        """
        # What managers try stands ready at the gate; the wide query of lists costs as much as the call.
        tool = tester.find_tool(self.workspace.pk, UUID(str(pk)), self.actor) or self.get_object()
        values = self.read(TryInput)
        try:
            outcome = tester.try_tool(
                tool=tool,
                arguments=values.get("arguments", {}),
                actor=self.actor,
                is_confirmed=values["confirm"],
                departure=departure_of_once(request),
            )
        except ApprovalMissing as error:
            if not error.decision.needs_second_person:
                error.message = _(
                    "%(reason)s Nothing was sent. To allow exactly this call, send it with “confirm”: true."
                ) % {"reason": error.message}
            raise
        return Response(outcome_in_json(outcome))
