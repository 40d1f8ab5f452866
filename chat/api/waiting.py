"""What waits for the caller, over REST. `tool-calls/…/decide/` and `input-requests/…/answer/` settle it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import InputRequestOutput, ToolCallOutput
from chat.models import ToolCall
from chat.services.waiting import Waiting, waiting_for
from chat.wire import input_request_json, tool_call_json
from workspaces.api import Scopes, WorkspaceViewSet


class WaitingPlace(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    avatar = serializers.CharField(allow_blank=True)


class WaitingOutput(serializers.Serializer[Any]):
    """A call that waits for approval, or a question or sign-in of a server; one of the two is null."""

    conversation = WaitingPlace()
    message_id = serializers.UUIDField(
        allow_null=True, help_text="Where it stands. Calls of one message are one step."
    )
    tool_call = ToolCallOutput(allow_null=True)
    input_request = InputRequestOutput(allow_null=True)

    def to_representation(self, instance: Waiting) -> dict[str, Any]:
        conversation = instance.conversation
        call, request = instance.tool_call, instance.input_request
        return {
            "conversation": {
                "id": str(conversation.pk),
                "title": conversation.title,
                "avatar": conversation.bud.avatar,
            },
            "message_id": str(instance.message_id) if instance.message_id else None,
            "tool_call": tool_call_json(call) if call is not None else None,
            "input_request": input_request_json(request) if request is not None else None,
        }


class WaitingViewSet(WorkspaceViewSet):
    """Approvals, questions and sign-ins that wait for the caller, in all their conversations."""

    model = ToolCall
    scopes = Scopes(read="chat", write="chat")
    serializer_class = WaitingOutput
    pagination_class = None  # type: ignore[assignment]  # a short list, given whole

    @extend_schema(responses=WaitingOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """The oldest first, at most 100."""
        rows = waiting_for(workspace=self.workspace, person=self.person)
        return Response(WaitingOutput(rows, many=True).data)
