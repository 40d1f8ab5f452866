"""What waits for the caller, over REST.

`tool-calls/…/decide/`, `input-requests/…/answer/` and `access-requests/…/decide/` settle it.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import InputRequestOutput, ToolCallOutput
from chat.models import ToolCall
from chat.services.pending_decisions import PendingDecision, waiting_for
from chat.wire.payloads import input_request_json, tool_call_json
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.models import AccessRequest
from workspaces.people.access_requests import may_decide, path_to_set_up
from workspaces.roles import Permission, has_permission


class WaitingPlace(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    avatar = serializers.CharField(allow_blank=True)


class RequestToDecide(serializers.ModelSerializer[AccessRequest]):
    """What a member asks for."""

    requester = serializers.CharField(
        source="requester.display_name", help_text="The name of who asks."
    )
    requester_email = serializers.CharField(source="requester.email")
    path_to_set_up = serializers.SerializerMethodField(
        help_text="The page where it is looked for and set up."
    )

    class Meta:
        model = AccessRequest
        fields = (
            *("id", "requester", "requester_email", "kind", "name", "reason"),
            *("created_at", "path_to_set_up"),
        )
        read_only_fields = fields

    def get_path_to_set_up(self, row: AccessRequest) -> str:
        return path_to_set_up(row)


class WaitingOutput(serializers.Serializer[Any]):
    """A call that waits for approval or whose outcome is unknown, a question or sign-in of a server, or what a member asks for. The others are null."""

    conversation = WaitingPlace(
        allow_null=True, help_text="Null for what a member asks for, which belongs to none."
    )
    message_id = serializers.UUIDField(
        allow_null=True, help_text="Where it stands. Calls of one message are one step."
    )
    tool_call = ToolCallOutput(allow_null=True)
    input_request = InputRequestOutput(allow_null=True)
    access_request = RequestToDecide(
        allow_null=True, help_text="Listed for administrators; not what they ask for themselves."
    )
    asked_by = serializers.CharField(
        allow_null=True,
        help_text="Of a call that waits for a second person: the name of who asked. Its conversation is not told.",
    )

    def to_representation(self, instance: PendingDecision) -> dict[str, Any]:
        conversation = instance.conversation
        call, request, asked = instance.tool_call, instance.input_request, instance.access_request
        return {
            "conversation": {
                "id": str(conversation.pk),
                "title": conversation.title,
                "avatar": conversation.bud.avatar,
            }
            if conversation is not None
            else None,
            "message_id": str(instance.message_id) if instance.message_id else None,
            "tool_call": tool_call_json(call) if call is not None else None,
            "input_request": input_request_json(request) if request is not None else None,
            "access_request": RequestToDecide(asked).data if asked is not None else None,
            "asked_by": instance.asked_by.display_name if instance.asked_by else None,
        }


class WaitingViewSet(WorkspaceViewSet):
    """What waits for the caller: approvals, questions and sign-ins of all their conversations, and requests of members."""

    model = ToolCall
    scopes = Scopes(read="chat", write="chat")
    serializer_class = WaitingOutput
    pagination_class = None  # a short list, given whole

    @extend_schema(responses=WaitingOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """The oldest first, at most 100."""
        rows = waiting_for(
            workspace=self.workspace,
            person=self.person,
            # A token may stand for less than its owner may do.
            with_requests=may_decide(self.actor, self.workspace),
            with_calls_of_others=has_permission(
                self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
            ),
        )
        return Response(WaitingOutput(rows, many=True).data)
