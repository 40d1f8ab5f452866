"""Conversations and messages over REST."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from django.db.models import Max, OuterRef, Subquery
from django.http import HttpResponse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.artifacts import ArtifactsOfConversation
from chat.api.offers import OffersOfChat, ServersOutput, ToolChoiceField, servers_json
from chat.api.shapes import (
    AttachedName,
    ConversationOutput,
    MessageOutput,
    ModelInput,
    SentOutput,
    sent_json,
)
from chat.api.sharing import ShareOfConversation
from chat.engine.attaching import FileRef, Ref, ResourceRef
from chat.models import Bud, Conversation, Message, Turn
from chat.models.turns import ACTIVE
from chat.services.conversations import (
    active_status,
    change_conversations,
    create_conversation,
    delete_conversation,
    erase_from_trash,
    keep_conversation,
    restore_conversation,
    update_conversation,
)
from chat.services.exports import ExportFormat, export_conversation
from chat.services.seen_answers import mark_seen
from chat.services.tool_settings import ToolChange, change_tools
from chat.services.turns import send_or_queue
from chat.tools.usable_servers import ChatSetting
from chat.values import BulkChange, WhenBusy
from chat.wire.payloads import attachments_of
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceQuerySet

MOST_AT_ONCE = 100
"""Conversations of one change."""


class NewConversation(serializers.Serializer[Any]):
    bud_id = serializers.UUIDField()
    model = ModelInput(required=False, help_text="Without it the bud's own.")
    mcp_config_overrides = serializers.DictField(required=False)
    is_temporary = serializers.BooleanField(
        default=False,
        help_text="In no list and no search, and erased some hours after its last activity.",
    )
    folder_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Where it is sorted into. Null: in no folder."
    )
    client_id = serializers.CharField(
        max_length=64,
        required=False,
        help_text="Your own id: the same one again gives the same conversation.",
    )


class ConversationChanges(serializers.Serializer[Any]):
    title = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="Empty only as long as it has none: then Trellis gives it one.",
    )
    is_pinned = serializers.BooleanField(required=False)
    is_archived = serializers.BooleanField(required=False)
    mcp_config_overrides = serializers.DictField(required=False)
    folder_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Null: in no folder."
    )
    bud_id = serializers.UUIDField(
        required=False, help_text="Who answers from now on, with its own model."
    )
    model = ModelInput(
        required=False, allow_null=True, help_text="Answers from now on; null: the bud's own."
    )


class ToolChangeInput(serializers.Serializer[Any]):
    change = serializers.ChoiceField(
        [change.value for change in ToolChange],
        help_text="`disable_server` is of one that the bud or you bring along, `remove_server` of one that was added.",
    )
    server_id = serializers.UUIDField(required=False, help_text="Of a change of a server.")
    tool_id = serializers.UUIDField(required=False, help_text="Of a change of a tool.")
    tool_choice = ToolChoiceField(
        required=False, allow_null=True, help_text="Of `choose_tool`. Null: as the bud chooses."
    )


class SeenInput(serializers.Serializer[Any]):
    until = serializers.DateTimeField(
        required=False,
        help_text="The `unseen_answer_at` of what was seen. An answer that ended later stays unseen. Absent: all.",
    )


class BulkInput(serializers.Serializer[Any]):
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=1, max_length=MOST_AT_ONCE
    )
    change = serializers.ChoiceField([change.value for change in BulkChange])
    folder_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Of `move`; null: into no folder."
    )


def _ref(values: dict[str, Any]) -> Ref:
    return FileRef(**values) if "artifact_id" in values else ResourceRef(**values)


class NewMessage(serializers.Serializer[Any]):
    client_id = serializers.CharField(
        max_length=64, help_text="Your own id: the same one again sends nothing twice."
    )
    text = serializers.CharField(
        max_length=100_000,
        trim_whitespace=False,
        allow_blank=True,
        help_text="May be empty if something is attached.",
    )
    attachments = AttachedName(many=True, required=False)
    when_busy = serializers.ChoiceField(
        [choice.value for choice in WhenBusy],
        default=WhenBusy.REFUSE.value,
        help_text="While a turn runs: refuse this message, queue it, or interrupt the turn.",
    )
    bud_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The bud that answers this message, in place of the conversation's.",
    )
    compare = ModelInput(
        many=True,
        required=False,
        help_text="Two or three models that answer this message side by side. Then choose one of their turns.",
    )


class ConversationFilters(RowFilterSet):
    search = django_filters.CharFilter(field_name="title", lookup_expr="icontains")
    archived = TruthFilter(field_name="is_archived")
    bud = django_filters.UUIDFilter(field_name="bud_id")
    folder = django_filters.UUIDFilter(field_name="folder_id")
    temporary = TruthFilter(field_name="is_temporary")


_NOT_LISTED = (
    "client_digest",
    "mcp_config_overrides",
    "bud__description",
    "bud__system_prompt",
    "bud__parameters",
    "bud__starter_prompts",
    "bud__mcp_config",
)
"""Columns that may be long, and that no line of a list shows."""


class ConversationViewSet(
    ArtifactsOfConversation,
    OffersOfChat,
    ShareOfConversation,
    ListRows,
    RetrieveRow,
    WorkspaceViewSet,
):
    """The caller's own conversations."""

    model = Conversation
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ConversationOutput
    filterset_class = ConversationFilters
    orderings: ClassVar[Any] = ("-last_message_at", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        # Mostly one at most; in an order SQLite might look for it through all turns. The most urgent is the greatest.
        active = Turn.unscoped.filter(conversation=OuterRef("pk"), status__in=ACTIVE).order_by()
        active = active.values("conversation").annotate(urgent=Max("status"))
        # A superuser sees everything in the admin, but a conversation is its owner's alone.
        rows = super().rows().filter(owner=self.person)
        rows = rows.annotate(active_turn_status=Subquery(active.values("urgent")))
        if self.action == "list":
            listed = rows.filter(bud__is_draft=False).select_related("bud", "chosen_model")
            # Who wants the temporary ones asks for them.
            if not self.request.query_params.get("temporary"):
                listed = listed.filter(is_temporary=False)
            return listed.defer(*_NOT_LISTED)
        return rows.select_related("bud__workspace", "chosen_model")

    def chat_setting(self, pk: str) -> ChatSetting:
        return ChatSetting.of(self.get_object())

    @extend_schema(request=NewConversation, responses={201: ConversationOutput})
    def create(self, request: Request) -> Response:
        """Open a conversation with a bud."""
        values = self.read(NewConversation)
        bud = (
            Bud.objects.for_workspace(self.workspace)
            .visible_to(self.person)
            .fetch(values["bud_id"])
        )
        conversation = create_conversation(
            bud=bud,
            owner=self.person,
            actor=self.actor,
            client_id=values.get("client_id"),
            mcp_config_overrides=values.get("mcp_config_overrides"),
            model=values.get("model"),
            is_temporary=values["is_temporary"],
            folder_id=values.get("folder_id"),
        )
        return self.answer(conversation, status=201)

    @extend_schema(request=ConversationChanges, responses=ConversationOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename, pin, archive, or change which bud, model and tools it uses."""
        conversation = self.get_object()
        changes = self.read(ConversationChanges, partial=True)
        if changes.get("title") == conversation.title:
            del changes["title"]  # it came back, and nobody has chosen it
        elif not changes.get("title", "given"):
            raise ValidationError({"title": [_("A title needs at least one letter.")]}, "blank")
        if "bud_id" in changes:
            rows = Bud.objects.for_workspace(self.workspace).visible_to(self.person)
            buds = rows.select_related("provider")
            bud = buds.find(changes.pop("bud_id"))
            if bud is None:
                raise InvalidInput(fields={"bud_id": [_("There is no such bud here.")]})
            changes["bud"] = bud
        row = update_conversation(conversation=conversation, actor=self.actor, **changes)
        row.active_turn_status = active_status(row)  # type: ignore[attr-defined]  # annotated in lists
        return self.answer(row)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a conversation. `restore` brings it back within some days; then it is erased."""
        delete_conversation(conversation=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=ConversationOutput)
    @action(detail=True, methods=["post"])
    def keep(self, request: Request, pk: str) -> Response:
        """Make a temporary conversation a usual one: it stands in your list, and is not erased by itself."""
        row = keep_conversation(conversation=self.get_object(), actor=self.actor)
        row.active_turn_status = active_status(row)  # type: ignore[attr-defined]  # annotated in lists
        return self.answer(row)

    @extend_schema(request=ToolChangeInput, responses=ServersOutput)
    @action(detail=True, methods=["post"])
    def tools(self, request: Request, pk: str) -> Response:
        """Change one server, one tool or the choice. All else that the chat changes of its bud's tools stays."""
        values = self.read(ToolChangeInput)
        row = change_tools(
            conversation=self.get_object(),
            change=ToolChange(values.pop("change")),
            actor=self.actor,
            **values,
        )
        setting = ChatSetting.of(row)
        return Response(servers_json(setting, person=self.person, actor=self.actor))

    @extend_schema(request=SeenInput, responses={204: None})
    @action(detail=True, methods=["post"])
    def seen(self, request: Request, pk: str) -> Response:
        """Say that you have seen the newest answer: it is new on none of your devices then."""
        values = self.read(SeenInput)
        mark_seen(conversation=self.get_object(), until=values.get("until"), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=BulkInput, responses=ConversationOutput(many=True), filters=False)
    @action(detail=False, methods=["post"], pagination_class=None)
    def bulk(self, request: Request) -> Response:
        """Archive, unarchive, move, delete, restore or erase up to 100 conversations. If one is not there, nothing is changed.

        Those to restore or erase are deleted ones. What was erased is not in the answer.
        """
        values = self.read(BulkInput)
        rows: Any = change_conversations(
            ids=values["ids"],
            change=BulkChange(values["change"]),
            folder_id=values.get("folder_id"),
            workspace=self.workspace,
            person=self.person,
            actor=self.actor,
        )
        return Response(self.get_serializer(rows, many=True).data)

    @extend_schema(responses=ConversationOutput(many=True), filters=False)
    @action(detail=False, methods=["get"], filterset_class=None, orderings=("-deleted_at",))
    def deleted(self, request: Request) -> Response:
        """What you deleted and can bring back, the last one first."""
        rows = self._deleted().select_related("bud", "chosen_model").defer(*_NOT_LISTED)
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(request=None, responses=ConversationOutput)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: str) -> Response:
        """Bring a deleted conversation back."""
        row = restore_conversation(conversation=self._deleted().fetch(pk), actor=self.actor)
        return self.answer(row)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def erase(self, request: Request, pk: str) -> Response:
        """Erase a deleted conversation for good. What was called stays in the audit log."""
        erase_from_trash(conversation=self._deleted().fetch(pk), actor=self.actor)
        return Response(status=204)

    def _deleted(self) -> Any:
        return Conversation.objects.for_workspace(self.workspace).deleted_by(self.person)

    @extend_schema(methods=["GET"], responses=MessageOutput(many=True))
    @extend_schema(methods=["POST"], request=NewMessage, responses={202: SentOutput})
    @action(detail=True, methods=["get", "post"], filterset_class=None, orderings=("order_key",))
    def messages(self, request: Request, pk: str) -> Response:
        """Read the messages, oldest first; or send one, which starts a turn."""
        conversation = self.get_object()
        if request.method == "GET":
            rows = Message.objects.for_workspace(self.workspace).filter(conversation=conversation)
            page = self.paginate_queryset(rows) or []
            context = {"attachments": attachments_of(self.workspace.pk, page)}
            return self.get_paginated_response(MessageOutput(page, many=True, context=context).data)
        values = self.read(NewMessage)
        sent = send_or_queue(
            conversation=conversation,
            client_id=values["client_id"],
            text=values["text"],
            attachments=[_ref(one) for one in values.get("attachments", ())],
            when_busy=WhenBusy(values["when_busy"]),
            bud_id=values.get("bud_id"),
            compare=[(one["provider_id"], one["name"]) for one in values.get("compare", ())],
            actor=self.actor,
        )
        return Response(sent_json(sent), status=202)

    @extend_schema(
        parameters=[OpenApiParameter("as", str, enum=[form.value for form in ExportFormat])],
        responses={(200, "text/markdown"): str, (200, "application/json"): dict},
        filters=False,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def export(self, request: Request, pk: str) -> HttpResponse:
        """The shown path as a file, Markdown (`as=md`, the default) or JSON; what looks like a secret is masked."""
        wanted = request.query_params.get("as", ExportFormat.MARKDOWN.value)
        if wanted not in set(ExportFormat):
            raise ParseError("The parameter 'as' is md or json.")
        made = export_conversation(self.get_object(), ExportFormat(wanted))
        disposition = content_disposition_header(as_attachment=True, filename=made.name)
        return HttpResponse(
            made.body,
            content_type=made.content_type,
            headers={"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"},
        )

    parameters: ClassVar[Any] = {
        "deleted": ("cursor", "page_size"),
        "export": ("as",),
        **OffersOfChat.offer_parameters,
        "messages": ("cursor", "page_size"),
    }
