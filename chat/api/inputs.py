"""What servers ask people during calls, over REST: look, answer, decline."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import InputRequestOutput
from chat.services.inputs import answer_input
from mcp_servers.client.inputs import InputAction
from mcp_servers.models import InputRequest, InputStatus
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class InputAnswerInput(serializers.Serializer[Any]):
    action = serializers.ChoiceField([action.value for action in InputAction])
    content = serializers.DictField(
        required=False, allow_null=True, help_text="The values of an accepted form."
    )


class InputRequestFilters(RowFilterSet):
    status = django_filters.ChoiceFilter(choices=InputStatus.choices)
    conversation = django_filters.UUIDFilter(field_name="conversation_id")


class InputRequestViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What servers asked the caller."""

    model = InputRequest
    scopes = Scopes(read="chat", write="chat")
    serializer_class = InputRequestOutput
    filterset_class = InputRequestFilters
    orderings: ClassVar[Any] = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        # A superuser sees everything in the admin, but a question is for one person alone.
        return super().rows().filter(asked_of=self.person)

    @extend_schema(request=InputAnswerInput, responses=InputRequestOutput)
    @action(detail=True, methods=["post"], url_path="answer", url_name="answer")
    def give_answer(self, request: Request, pk: str) -> Response:
        """Answer (`accept`), `decline` or `cancel`; once, and the call goes on with it."""
        row = self.get_object()
        values = self.read(InputAnswerInput)
        row = answer_input(
            request=row,
            action=InputAction(values["action"]),
            content=values.get("content"),
            actor=self.actor,
        )
        return self.answer(row)
