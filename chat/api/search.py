"""Search in one's own conversations, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Conversation
from chat.services.search import LONGEST_QUERY, FoundIn, SearchHit, search
from chat.services.search_filters import HELP
from workspaces.api import Scopes, WorkspaceViewSet


class FoundPiece(serializers.Serializer[Any]):
    """A piece of an excerpt."""

    text = serializers.CharField()
    is_match = serializers.BooleanField()


class FoundOutput(serializers.Serializer[Any]):
    """A place where something was found."""

    found_in = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in FoundIn],
        help_text="A conversation's title, a message, a file's name, or a call of a tool or an attached file of a message.",
    )
    name = serializers.CharField(
        allow_blank=True, help_text="Of the tool or the file; empty for titles and messages."
    )
    conversation_id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    avatar = serializers.CharField(help_text="Of the conversation's bud: one emoji.")
    is_archived = serializers.BooleanField()
    message_id = serializers.UUIDField(allow_null=True)
    artifact_id = serializers.UUIDField(allow_null=True)
    excerpt = FoundPiece(many=True, help_text="Empty where it would only repeat `title`.")
    at = serializers.DateTimeField()

    def to_representation(self, instance: SearchHit) -> dict[str, Any]:
        conversation = instance.conversation
        return {
            "found_in": instance.found_in.value,
            "name": instance.name,
            "conversation_id": str(conversation.pk),
            "title": conversation.title,
            "avatar": conversation.bud.avatar,
            "is_archived": conversation.is_archived,
            "message_id": str(instance.message_id) if instance.message_id else None,
            "artifact_id": str(instance.artifact_id) if instance.artifact_id else None,
            "excerpt": [{"text": text, "is_match": hit} for text, hit in instance.excerpt],
            "at": instance.at.isoformat(),
        }


class SearchViewSet(WorkspaceViewSet):
    """The caller's own conversations, archived ones too."""

    model = Conversation
    scopes = Scopes(read="chat", write="chat")
    serializer_class = FoundOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {"list": ("q",)}

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "q",
                str,
                required=True,
                description=(
                    f"Words, found by their beginning, and phrases in quotation marks; up to {LONGEST_QUERY} characters."
                    " Filters narrow them: "
                    + "; ".join(f"`{name}:` {about}" for name, about in HELP.items())
                    + ". Days are those of UTC."
                ),
            )
        ],
        responses=FoundOutput(many=True),
        filters=False,
    )
    def list(self, request: Request) -> Response:
        """Find words in titles, messages, names of files, calls of tools and attached files; up to 60 places."""
        hits = search(
            workspace=self.workspace, person=self.person, query=request.query_params.get("q", "")
        )
        return Response(FoundOutput(hits, many=True).data)
