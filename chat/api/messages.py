"""Messages and their branches over REST, and those that wait their turn."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import (
    AttachmentContentOutput,
    ConversationOutput,
    MessageOutput,
    OlderOutput,
    QueuedMessageOutput,
    SentOutput,
    TurnOutput,
    sent_json,
)
from chat.models import Attachment, Message, QueuedMessage
from chat.services.branches import edit_message, fork_conversation, show_branch
from chat.services.queue import edit_queued, remove_queued, send_queued_now
from chat.services.summaries import change_summary
from chat.services.turns import LONGEST_MESSAGE
from chat.snapshots import read_newer, read_older
from chat.summaries import LONGEST_SUMMARY
from chat.wire.payloads import attachments_of
from workspaces.api import RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.scoping import WorkspaceQuerySet


class EditInput(serializers.Serializer[Any]):
    client_id = serializers.CharField(
        max_length=64, help_text="Your own id: the same one again asks nothing twice."
    )
    text = serializers.CharField(max_length=LONGEST_MESSAGE, trim_whitespace=False)


class SummaryChanges(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=LONGEST_SUMMARY, required=False, trim_whitespace=False)
    is_used = serializers.BooleanField(required=False)


class ForkInput(serializers.Serializer[Any]):
    client_id = serializers.CharField(
        max_length=64, help_text="Your own id: the same one again gives the same conversation."
    )


class QueuedChanges(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=LONGEST_MESSAGE, trim_whitespace=False)


class MessageViewSet(RetrieveRow, WorkspaceViewSet):
    """What was said; messages with one parent are branches of each other."""

    model = Message
    scopes = Scopes(read="chat", write="chat")
    serializer_class = MessageOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        rows = super().rows().filter(conversation__owner=self.person, conversation__deleted_at=None)
        return rows.select_related("conversation")

    @extend_schema(request=EditInput, responses={202: SentOutput})
    @action(detail=True, methods=["post"])
    def edit(self, request: Request, pk: str) -> Response:
        """Ask differently: the new wording is a branch beside the old one, and is answered."""
        values = self.read(EditInput)
        sent = edit_message(message=self.get_object(), actor=self.actor, **values)
        return Response(sent_json(sent), status=202)

    @extend_schema(request=None, responses=ConversationOutput)
    @action(detail=True, methods=["post"])
    def show(self, request: Request, pk: str) -> Response:
        """Go on from this branch: the conversation's path leads through it from now on."""
        conversation = show_branch(message=self.get_object(), actor=self.actor)
        return Response(ConversationOutput(conversation).data)

    @extend_schema(responses=OlderOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def older(self, request: Request, pk: str) -> Response:
        """What was said before this message: up to 100 messages of its path, for a page that has scrolled up to it."""
        return Response(OlderOutput(read_older(self.get_object())).data)

    @extend_schema(responses=OlderOutput, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def newer(self, request: Request, pk: str) -> Response:
        """What was said from this message on: up to 100 messages of the shown path, none if it is on another branch."""
        return Response(OlderOutput(read_newer(self.get_object())).data)

    @extend_schema(request=SummaryChanges, responses=MessageOutput)
    @action(detail=True, methods=["patch"])
    def summary(self, request: Request, pk: str) -> Response:
        """Change the summary of this message and all above it, or have it not used."""
        values = self.read(SummaryChanges, partial=True)
        row = change_summary(message=self.get_object(), actor=self.actor, **values)
        return Response(
            MessageOutput(
                row, context={"attachments": attachments_of(row.workspace_id, [row])}
            ).data
        )

    @extend_schema(request=ForkInput, responses={201: ConversationOutput})
    @action(detail=True, methods=["post"])
    def fork(self, request: Request, pk: str) -> Response:
        """Copy the path that ends with this answer into a conversation of its own."""
        values = self.read(ForkInput)
        conversation = fork_conversation(
            message=self.get_object(), owner=self.person, actor=self.actor, **values
        )
        return Response(ConversationOutput(conversation).data, status=201)


class AttachmentViewSet(RetrieveRow, WorkspaceViewSet):
    """What was read of a resource that one of your messages took along."""

    model = Attachment
    scopes = Scopes(read="chat", write="chat")
    serializer_class = AttachmentContentOutput


class QueuedMessageViewSet(RetrieveRow, WorkspaceViewSet):
    """A message that waits for the running turn to end."""

    model = QueuedMessage
    scopes = Scopes(read="chat", write="chat")
    serializer_class = QueuedMessageOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        return super().rows().filter(conversation__owner=self.person, conversation__deleted_at=None)

    @extend_schema(request=QueuedChanges, responses=QueuedMessageOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what will be said."""
        values = self.read(QueuedChanges)
        row = edit_queued(queued=self.get_object(), text=values["text"], actor=self.actor)
        return self.answer(row)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Take it back."""
        remove_queued(queued=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses={200: TurnOutput, 202: None})
    @action(detail=True, methods=["post"])
    def send(self, request: Request, pk: str) -> Response:
        """Send it now; a running turn is stopped for it. 202: that one still has to end."""
        turn = send_queued_now(queued=self.get_object(), actor=self.actor)
        return Response(TurnOutput(turn).data) if turn is not None else Response(status=202)
