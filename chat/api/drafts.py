"""A person's drafts over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Draft
from chat.services.drafts import keep_draft
from chat.services.turns import LONGEST_MESSAGE
from workspaces.api import Scopes, WorkspaceViewSet

MOST_DRAFTS = 200


class DraftInput(serializers.Serializer[Any]):
    conversation_id = serializers.UUIDField(allow_null=True, help_text="Null: the start page.")
    text = serializers.CharField(
        max_length=LONGEST_MESSAGE,
        trim_whitespace=False,
        allow_blank=True,
        help_text="Empty: it was sent or removed.",
    )
    written_at = serializers.DateTimeField(help_text="When, by your clock. The last writer wins.")


class DraftOutput(serializers.Serializer[Any]):
    """What stands in a message field."""

    conversation_id = serializers.UUIDField(allow_null=True)
    text = serializers.CharField(allow_blank=True)
    written_at = serializers.DateTimeField()


class DraftViewSet(WorkspaceViewSet):
    """The caller's own drafts."""

    model = Draft
    scopes = Scopes(read="chat", write="chat")
    serializer_class = DraftOutput
    pagination_class = None  # type: ignore[assignment]  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=DraftOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """The newest 200, removed ones too: a device learns from them that its own is out of date."""
        rows = Draft.objects.for_workspace(self.workspace).visible_to(self.person)
        rows = rows.filter(owner=self.person)[:MOST_DRAFTS]
        return Response(DraftOutput(rows, many=True).data)

    @extend_schema(request=DraftInput, responses={200: DraftOutput})
    def create(self, request: Request) -> Response:
        """Keep a draft. The answer is what is kept: a newer one stays."""
        values = self.read(DraftInput)
        kept = keep_draft(workspace=self.workspace, owner=self.person, actor=self.actor, **values)
        return Response(DraftOutput(kept).data)
