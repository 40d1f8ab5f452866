"""Turns and tool calls over REST: look, stop, retry, decide."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import ToolCallOutput, TurnOutput
from chat.models import ToolCall, Turn
from chat.services.approvals import LONGEST_NOTE, decide
from chat.services.turns import retry_turn, stop_turn
from chat.values import Decision, Remember
from workspaces.api import RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class DecisionInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(["approve", "refuse"])
    arguments = serializers.DictField(
        required=False, allow_null=True, help_text="The call's arguments, if edited."
    )
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_blank=True, required=False)
    remember = serializers.ChoiceField(
        [Remember.CONVERSATION.value, Remember.EVERYWHERE.value],
        required=False,
        help_text="With an approval: let this tool run without asking from now on.",
    )


class TurnViewSet(RetrieveRow, WorkspaceViewSet):
    """What answers a message."""

    model = Turn
    scopes = Scopes(read="chat", write="chat")
    serializer_class = TurnOutput

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return super().get_queryset().filter(conversation__owner=self.person)

    @extend_schema(request=None, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """Stop a turn and the calls that run in it."""
        return self.answer(stop_turn(turn=self.get_object(), actor=self.actor))

    @extend_schema(request=None, responses=TurnOutput)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Go on with a turn that failed or was stopped."""
        return self.answer(retry_turn(turn=self.get_object(), actor=self.actor))

    @extend_schema(request=None, responses=ToolCallOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], url_path="tool-calls", pagination_class=None)
    def tool_calls(self, request: Request, pk: str) -> Response:
        """The calls of a turn, in the order asked."""
        calls = (
            ToolCall.objects.for_workspace(self.workspace)
            .filter(turn=self.get_object())
            .select_related("decided_by")
            .order_by("message__order_key", "position")
        )
        return Response(ToolCallOutput(calls, many=True).data)


class ToolCallViewSet(RetrieveRow, WorkspaceViewSet):
    """One call of a tool."""

    model = ToolCall
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ToolCallOutput

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        rows = super().get_queryset().filter(turn__conversation__owner=self.person)
        return rows.select_related("decided_by")

    @extend_schema(request=DecisionInput, responses=ToolCallOutput)
    @action(detail=True, methods=["post"])
    def decide(self, request: Request, pk: str) -> Response:
        """Approve or refuse a call that waits; a decision is final."""
        call = self.get_object()
        values = self.read(DecisionInput)
        is_approval = values["decision"] == "approve"
        call = decide(
            call=call,
            decision=Decision.APPROVED if is_approval else Decision.REFUSED,
            actor=self.actor,
            arguments=values.get("arguments") if is_approval else None,
            note=values.get("note", ""),
            remember=Remember(values.get("remember", "")) if is_approval else Remember.NOT,
        )
        return self.answer(call)
