"""Sharing conversations over REST: a conversation's own share, the caller's shared chats, and reading others'."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import ConversationOutput
from chat.models import Bud, ShareAudience, SharedChat
from chat.services.shared_reading import chats_given_to, copy_shared, find_shared
from chat.services.sharing import (
    MOST_READERS,
    ShareChoice,
    find_people,
    link_of,
    readers_of,
    share_conversation,
    stop_sharing,
)
from chat.values import MessageRole, ToolCallStatus
from workspaces.api import ListRows, Scopes, WorkspaceViewSet
from workspaces.errors import NotFound
from workspaces.scoping import WorkspaceQuerySet


class PersonOutput(serializers.Serializer[Any]):
    """A member of the workspace."""

    id = serializers.UUIDField()
    name = serializers.CharField(source="display_name")
    email = serializers.CharField()


@extend_schema_field(
    {
        "anyOf": [
            {"type": "string", "format": "uuid"},
            {"$ref": "#/components/schemas/PersonOutput"},
        ]
    }
)
class ReaderField(serializers.UUIDField):
    """A member by their id, or as a share shows them."""

    def to_internal_value(self, data: Any) -> Any:
        """Give the id."""
        given: Any = data.get("id") if isinstance(data, dict) else data
        return super().to_internal_value(given)


class ShareInput(serializers.Serializer[Any]):
    audience = serializers.ChoiceField(ShareAudience.values, help_text="Who may read it.")
    people = serializers.ListField(
        child=ReaderField(),
        max_length=MOST_READERS,
        required=False,
        help_text="Of `people`: the ids of members, or the members as a share shows them. `shared-chats/people/` finds them.",
    )
    with_files = serializers.BooleanField(
        default=False, help_text="Also attached files and those that answers made."
    )
    with_calls = serializers.BooleanField(
        default=False, help_text="Also what tools were asked, and what they answered."
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Null: no end."
    )
    until_message_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="Where the shared text ends. Absent: at the `end_message_id`. If that is absent, too: at the end of what the chat shows now.",
    )
    end_message_id = serializers.UUIDField(
        required=False, help_text="As the share shows it: the text stays as it is."
    )


class ShareOutput(serializers.Serializer[SharedChat]):
    """A conversation that others may read, as it was when it was shared."""

    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    title = serializers.CharField(source="conversation.title", allow_blank=True)
    link = serializers.SerializerMethodField(
        help_text="The page where it is read. Empty: the encryption key that protected it is gone."
    )
    audience = serializers.ChoiceField(ShareAudience.values)
    people = serializers.SerializerMethodField()
    with_files = serializers.BooleanField()
    with_calls = serializers.BooleanField()
    expires_at = serializers.DateTimeField(allow_null=True)
    is_open = serializers.SerializerMethodField(
        help_text="False: its date has passed, or the workspace no longer allows such links."
    )
    shared_at = serializers.DateTimeField(help_text="When its text was last updated.")
    end_message_id = serializers.UUIDField(source="text.end")
    is_current = serializers.SerializerMethodField(
        help_text="Whether it ends where the chat ends that you see."
    )
    created_at = serializers.DateTimeField()

    def get_link(self, row: SharedChat) -> str:
        return link_of(row)

    @extend_schema_field(PersonOutput(many=True))
    def get_people(self, row: SharedChat) -> Any:
        return PersonOutput(readers_of(row), many=True).data

    def get_is_open(self, row: SharedChat) -> bool:
        return not row.has_ended and not row.is_disallowed

    def get_is_current(self, row: SharedChat) -> bool:
        return row.conversation.leaf_id in (None, row.text.end)


class GivenChatOutput(serializers.Serializer[Any]):
    """A chat of somebody else that the caller was chosen to read."""

    id = serializers.UUIDField()
    title = serializers.CharField(
        source="shared_title", allow_blank=True, help_text="As it was when it was shared."
    )
    link = serializers.SerializerMethodField(
        help_text="The page where it is read. Empty: the encryption key that protected it is gone."
    )
    shared_by = PersonOutput(source="owner")
    shared_at = serializers.DateTimeField(help_text="When its text was last updated.")
    expires_at = serializers.DateTimeField(allow_null=True)

    def get_link(self, row: SharedChat) -> str:
        return link_of(row)


class ReadFile(serializers.Serializer[Any]):
    artifact_id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="Of its version.")
    name = serializers.CharField()
    content_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")


class ReadCall(serializers.Serializer[Any]):
    server = serializers.CharField(allow_blank=True)
    tool = serializers.CharField()
    status = serializers.ChoiceField([status.value for status in ToolCallStatus])
    arguments = serializers.JSONField(allow_null=True, help_text="Null: not shared.")
    result = serializers.CharField(allow_null=True, allow_blank=True, help_text="Null: not shared.")
    result_left_out = serializers.IntegerField(help_text="Characters that were too many.")


class ReadMessage(serializers.Serializer[Any]):
    role = serializers.ChoiceField([role.value for role in MessageRole])
    bud = serializers.CharField(allow_blank=True, help_text="Who answered.")
    text = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    is_whole = serializers.BooleanField(help_text="False: the answer was stopped, or failed.")
    files = ReadFile(many=True)
    left_out = serializers.IntegerField(help_text="Attachments that are not shared.")
    calls = ReadCall(many=True)


class SharedTextOutput(serializers.Serializer[SharedChat]):
    """A chat that somebody shares with the caller."""

    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    bud = serializers.CharField()
    shared_by = serializers.CharField()
    shared_at = serializers.DateTimeField()
    messages = ReadMessage(many=True)

    def to_representation(self, instance: SharedChat) -> dict[str, Any]:
        document = instance.text.value.model_dump(mode="json")
        return {
            "id": str(instance.pk),
            "title": document["title"],
            "bud": document["bud"],
            "shared_by": instance.owner.display_name,
            "shared_at": instance.shared_at,
            "messages": document["messages"],
        }


class CopyInput(serializers.Serializer[Any]):
    bud_id = serializers.UUIDField(help_text="Who answers in it.")
    client_id = serializers.CharField(
        max_length=64,
        required=False,
        help_text="Your own id: the same one again gives the same conversation.",
    )


def _with_all(rows: WorkspaceQuerySet[Any]) -> WorkspaceQuerySet[Any]:
    """What `ShareOutput` reads, in a fixed number of statements."""
    rows = rows.select_related("conversation", "workspace", "text")
    return rows.defer("text__document").prefetch_related("readers__person")


class ShareOfConversation:
    """Whether and how a conversation is shared."""

    @extend_schema(methods=["GET"], responses=ShareOutput)
    @extend_schema(methods=["PUT"], request=ShareInput, responses=ShareOutput)
    @extend_schema(methods=["DELETE"], responses={204: None})
    @action(
        detail=True,
        methods=["get", "put", "delete"],
        pagination_class=None,
        serializer_class=ShareOutput,
    )
    def share(self: Any, request: Request, pk: str) -> Response:
        """Read how it is shared; share it, or replace what others read and who they are; or stop sharing it."""
        conversation = self.get_object()
        if request.method == "PUT":
            values = self.read(ShareInput)
            choice = ShareChoice(
                audience=ShareAudience(values["audience"]),
                people=tuple(values.get("people", ())),
                with_files=values["with_files"],
                with_calls=values["with_calls"],
                expires_at=values.get("expires_at"),
                until=values.get("until_message_id") or values.get("end_message_id"),
            )
            share_conversation(conversation=conversation, choice=choice, actor=self.actor)
        rows = SharedChat.objects.for_workspace(self.workspace).filter(conversation=conversation)
        shared = _with_all(rows).first()
        if shared is None:
            raise NotFound(_("This chat is not shared."))
        if request.method == "DELETE":
            stop_sharing(shared=shared, actor=self.actor)
            return Response(status=204)
        return Response(ShareOutput(shared).data)


class SharedChatViewSet(ListRows, WorkspaceViewSet):
    """What the caller shares; and with the token of a link, what others share with them in this workspace."""

    model = SharedChat
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ShareOutput
    orderings: ClassVar[Any] = ("-created_at",)
    lookup_field = "token"
    lookup_value_converter = "str"
    parameters: ClassVar[Any] = {"people": ("search",)}

    def rows(self) -> WorkspaceQuerySet[Any]:
        return _with_all(super().rows().filter(owner=self.person))

    @extend_schema(responses=SharedTextOutput)
    def retrieve(self, request: Request, token: str) -> Response:
        """Read a shared chat by the token at the end of its link."""
        return Response(SharedTextOutput(self._find(token)).data)

    @extend_schema(request=CopyInput, responses={201: ConversationOutput})
    @action(detail=True, methods=["post"])
    def copy(self, request: Request, token: str) -> Response:
        """Begin a conversation of your own with its messages and files. Tool calls are not copied."""
        shared = self._find(token)
        values = self.read(CopyInput)
        buds = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
        new = copy_shared(
            shared=shared,
            bud=buds.filter(is_draft=False).fetch(values["bud_id"]),
            owner=self.person,
            actor=self.actor,
            client_id=values.get("client_id"),
        )
        return Response(ConversationOutput(new).data, status=201)

    @extend_schema(responses=GivenChatOutput(many=True), filters=False)
    @action(detail=False, methods=["get"], pagination_class=None)
    def given(self, request: Request) -> Response:
        """List the chats that others chose you to read, the one updated last first: at most 100."""
        rows = chats_given_to(self.person, self.workspace)
        return Response(GivenChatOutput(rows, many=True).data)

    @extend_schema(
        parameters=[OpenApiParameter("search", str)],
        responses=PersonOutput(many=True),
        filters=False,
    )
    @action(detail=False, methods=["get"], pagination_class=None)
    def people(self, request: Request) -> Response:
        """Find members to share with, by name or address: at most 20, without yourself."""
        typed = request.query_params.get("search", "")[:200]
        found = find_people(workspace=self.workspace, person=self.person, typed=typed)
        return Response(PersonOutput(found, many=True).data)

    def _find(self, token: str) -> SharedChat:
        shared = find_shared(token, self.person)
        if shared.workspace_id != self.workspace.pk:
            raise NotFound(_("This chat is not shared with you, or its link no longer works."))
        return shared
