"""Requests for servers and tools over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.models import AccessRequest, RequestKind
from workspaces.people.access_requests import (
    LONGEST_NAME,
    LONGEST_NOTE,
    LONGEST_REASON,
    ask,
    decide_request,
    requests_for,
    withdraw_request,
)
from workspaces.scoping import WorkspaceQuerySet


class AccessRequestOutput(serializers.ModelSerializer[AccessRequest]):
    """A member asks for something that they miss."""

    requester = serializers.UUIDField(source="requester_id")
    decided_by = serializers.UUIDField(source="decided_by_id", allow_null=True)

    class Meta:
        model = AccessRequest
        fields = (
            *("id", "requester", "kind", "name", "reason", "status"),
            *("decided_by", "decided_at", "note", "created_at"),
        )
        read_only_fields = fields


class AccessRequestInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(RequestKind.choices)
    name = serializers.CharField(max_length=LONGEST_NAME)
    reason = serializers.CharField(max_length=LONGEST_REASON)


class AnswerInput(serializers.Serializer[Any]):
    is_granted = serializers.BooleanField()
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_blank=True, default="")


class AccessRequestViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Requests: one's own; everybody's for those who manage servers."""

    model = AccessRequest
    scopes = Scopes(read="chat", write="chat")
    serializer_class = AccessRequestOutput
    orderings: ClassVar[Any] = ("-id", "created_at")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those that the caller may see."""
        return requests_for(self.workspace, self.actor)

    @extend_schema(request=AccessRequestInput, responses={201: AccessRequestOutput})
    def create(self, request: Request) -> Response:
        """Ask for something."""
        given = self.read(AccessRequestInput)
        row = ask(
            workspace=self.workspace,
            kind=RequestKind(given["kind"]),
            name=given["name"],
            reason=given["reason"],
            actor=self.actor,
        )
        return self.answer(row, status=201)

    @extend_schema(request=AnswerInput, responses=AccessRequestOutput)
    @action(detail=True, methods=["post"])
    def decide(self, request: Request, pk: str) -> Response:
        """Grant or decline it; the person is told."""
        row = self.get_object()
        given = self.read(AnswerInput)
        return self.answer(
            decide_request(
                request=row, is_granted=given["is_granted"], note=given["note"], actor=self.actor
            )
        )

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Withdraw one's own."""
        withdraw_request(request=self.get_object(), actor=self.actor)
        return Response(status=204)


routes = [("access-requests", AccessRequestViewSet)]
