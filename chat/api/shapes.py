"""The shapes of `chat.wire.payloads`, told to the API's schema; the values come from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from chat.engine.attaching import LONGEST_URI
from chat.engine.reading import compared_with
from chat.files.kinds import FileKind
from chat.models import Conversation, Message, QueuedMessage, ToolCall, Turn
from chat.services.turns import QueuedSend, SentTurn
from chat.snapshots import SnapshotPart
from chat.values import (
    AttachmentStatus,
    Decision,
    MessageRole,
    MessageStatus,
    Rating,
    ToolCallStatus,
    TurnStatus,
    Wish,
)
from chat.wire import payloads
from mcp_servers.models import InputRequest, InputStatus


def _choices(kind: Any) -> list[str]:
    return [member.value for member in kind]


TURN_STATUSES = _choices(TurnStatus)
TOOL_CALL_STATUSES = _choices(ToolCallStatus)
ARTIFACT_KINDS = _choices(FileKind)
"""Enums that have a name in the API's schema; see the settings."""


class UsageOutput(serializers.Serializer[Any]):
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(
        help_text="Of the prompt's: those that came out of the provider's cache."
    )
    completion_tokens = serializers.IntegerField()
    cost = serializers.CharField(
        allow_null=True, help_text="A decimal number; null: no prices are known."
    )


class ContextOutput(serializers.Serializer[Any]):
    """How much of what the model reads is used."""

    used = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True, help_text="Null: not known.")


class BudBrief(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    avatar = serializers.CharField()


class ChosenModelOutput(serializers.Serializer[Any]):
    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    name = serializers.CharField()


class ModelInput(serializers.Serializer[Any]):
    """One of the workspace's models, as `GET /api/models/` lists them."""

    also_shown = frozenset(
        {
            *("provider_name", "is_demo", "context_tokens", "sees_pictures", "calls_tools"),
            *("gets_tools", "reasons", "prompt_price", "completion_price", "prices_listed_on"),
            *("ends_on", "gone_since"),
        }
    )
    """What the list says besides may come with it."""

    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    name = serializers.CharField(max_length=200)


class ConversationOutput(serializers.Serializer[Conversation]):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    bud = BudBrief()
    chosen_model = ChosenModelOutput(
        allow_null=True, help_text="Answers in place of the bud's own model."
    )
    folder_id = serializers.UUIDField(allow_null=True)
    is_pinned = serializers.BooleanField()
    is_archived = serializers.BooleanField()
    is_shared = serializers.BooleanField(
        help_text="Others may read it as it was when you shared it."
    )
    is_temporary = serializers.BooleanField(
        help_text="In no list and no search, and erased some hours after its last activity. `keep` makes it a usual one."
    )
    deleted_at = serializers.DateTimeField(allow_null=True)
    leaf_id = serializers.UUIDField(
        allow_null=True, help_text="The message that the shown path ends with."
    )
    comparison_id = serializers.UUIDField(
        allow_null=True,
        help_text="Of the turns whose answers stand side by side, until one is chosen. Null: none do.",
    )
    forked_from = serializers.UUIDField(allow_null=True)
    status = serializers.ChoiceField(["idle", "running", "waiting"])
    usage = UsageOutput(allow_null=True)
    unseen_answer_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the newest answer ended that you have seen on no device. Null: you have seen all.",
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def to_representation(self, instance: Conversation) -> dict[str, Any]:
        return payloads.conversation_json(
            instance, turn_status=getattr(instance, "active_turn_status", None)
        )


class ServerName(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


class NamedRef(serializers.Serializer[Any]):
    id = serializers.UUIDField(allow_null=True, help_text="Null: it has been deleted.")
    name = serializers.CharField()


class TextPartOutput(serializers.Serializer[Any]):
    type = serializers.ChoiceField(["text"])
    text = serializers.CharField(allow_blank=True)


class MediaPartOutput(serializers.Serializer[Any]):
    """A picture or a sound."""

    type = serializers.ChoiceField(["image", "audio"])
    mime_type = serializers.CharField()
    data = serializers.CharField(allow_blank=True, help_text="Base64.")  # type: ignore[assignment]  # the name on the wire


class ResourceLinkPartOutput(serializers.Serializer[Any]):
    """A resource that the server names."""

    type = serializers.ChoiceField(["resource_link"])
    uri = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    mime_type = serializers.CharField(required=False, allow_null=True)


class ResourcePartOutput(serializers.Serializer[Any]):
    """A resource that the server sent along."""

    type = serializers.ChoiceField(["resource"])
    uri = serializers.CharField()
    mime_type = serializers.CharField(allow_null=True)
    text = serializers.CharField(allow_null=True, help_text="Null: it is not text.")
    sha256 = serializers.CharField(required=False, help_text="Of one that is not text.")


@extend_schema_field(
    PolymorphicProxySerializer(
        component_name="ContentPart",
        serializers=[TextPartOutput, MediaPartOutput, ResourceLinkPartOutput, ResourcePartOutput],
        resource_type_field_name=None,
    )
)
class ContentPartField(serializers.JSONField):
    """A part of what a server sent."""


class AttachedFile(serializers.Serializer[Any]):
    """One version of a file of the conversation."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    kind = serializers.ChoiceField(ARTIFACT_KINDS)
    content_type = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class AttachmentOutput(serializers.Serializer[Any]):
    """A resource or a file that was attached, and what was read of it."""

    id = serializers.UUIDField()
    server = ServerName(allow_null=True, help_text="Null for a file.")
    file = AttachedFile(allow_null=True, help_text="Null for a resource.")
    resource_id = serializers.UUIDField(allow_null=True)
    uri = serializers.CharField(allow_blank=True)
    title = serializers.CharField(allow_blank=True)
    mime_type = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(_choices(AttachmentStatus))
    error = serializers.CharField(
        allow_null=True,
        help_text="Why it could not be read. Of one that is ready: what is missing of it.",
    )
    preview = serializers.CharField(
        allow_blank=True,
        help_text="The beginning of what a resource said. `GET attachments/{id}/` gives all of it.",
    )
    size = serializers.IntegerField(
        allow_null=True, help_text="Bytes of that. Null: a file, or not known."
    )
    read_at = serializers.DateTimeField(allow_null=True)
    changed_at = serializers.DateTimeField(allow_null=True)


class AttachmentContentOutput(serializers.Serializer[Any]):
    """All that was read of a resource; nothing of a file, which has its own address."""

    id = serializers.UUIDField()
    content = serializers.ListField(child=ContentPartField())


class SummaryOutput(serializers.Serializer[Any]):
    """What the model reads in place of a message and all above it."""

    text = serializers.CharField()
    questions = serializers.IntegerField(help_text="How many, with their answers, it stands for.")
    is_used = serializers.BooleanField(
        help_text="False: older messages are left out where they do not fit, as without it."
    )
    is_edited = serializers.BooleanField(help_text="A person has changed its text.")


class MessageOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    turn_id = serializers.UUIDField(allow_null=True)
    parent_id = serializers.UUIDField(allow_null=True)
    role = serializers.ChoiceField(_choices(MessageRole))
    step = serializers.IntegerField()
    text = serializers.CharField(allow_blank=True)
    reasoning = serializers.CharField(
        allow_blank=True, help_text="What the model thought before it spoke."
    )
    status = serializers.ChoiceField(_choices(MessageStatus))
    client_id = serializers.CharField(allow_null=True)
    attachments = AttachmentOutput(many=True)
    usage = UsageOutput(allow_null=True)
    context_window = ContextOutput(allow_null=True)
    is_cut = serializers.BooleanField(
        help_text="The model reached the greatest length of an answer; the turn can be continued."
    )
    is_outline = serializers.BooleanField(
        help_text="Without its text, since another branch is shown: show its branch to read it."
    )
    summary = SummaryOutput(
        allow_null=True, help_text="Of this message and all above it, where there is one."
    )
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: Message) -> dict[str, Any]:
        attached = self.context.get("attachments", {})
        return payloads.message_json(instance, attachments=attached.get(instance.pk, ()))


class TurnErrorOutput(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    can_retry = serializers.BooleanField()


class TurnOutput(serializers.Serializer[Turn]):
    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    user_message_id = serializers.UUIDField()
    status = serializers.ChoiceField(TURN_STATUSES)
    error = TurnErrorOutput(allow_null=True)
    notice = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    usage = UsageOutput(allow_null=True)
    model = serializers.CharField(allow_null=True, help_text="Which one answered.")
    bud_id = serializers.UUIDField(
        allow_null=True, help_text="The bud that was named in place of the conversation's."
    )
    comparison_id = serializers.UUIDField(
        allow_null=True,
        help_text="Shared by turns whose answers stand, or stood, side by side.",
    )
    place = serializers.IntegerField(help_text="Its place among these; alone it is 0.")
    asked_model = ChosenModelOutput(
        allow_null=True, help_text="Of an answer beside others: the model that was asked."
    )
    wish = serializers.ChoiceField(
        [wish.value for wish in Wish if wish],
        allow_null=True,
        help_text="How this answer was to differ from an earlier one.",
    )
    rating = serializers.ChoiceField([one.value for one in Rating if one], allow_null=True)
    rating_reason = serializers.CharField(allow_blank=True)

    def to_representation(self, instance: Turn) -> dict[str, Any]:
        return payloads.turn_json(instance)


class ToolRef(NamedRef):
    title = serializers.CharField(allow_blank=True)


class ApprovalOutput(serializers.Serializer[Any]):
    rule = serializers.CharField()
    reason = serializers.CharField()
    credential = serializers.ChoiceField(
        ["workspace", "personal"],
        allow_null=True,
        help_text="Whose access the call would use, as long as it waits.",
    )
    expires_at = serializers.DateTimeField(allow_null=True)
    decision = serializers.ChoiceField(_choices(Decision), allow_null=True)
    decided_by = serializers.CharField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(allow_null=True)
    edited = serializers.BooleanField()
    can_remember = serializers.BooleanField()
    needs_second_person = serializers.BooleanField(
        help_text="Only an admin or owner who did not ask for it may allow it."
    )
    call_rule = NamedRef(allow_null=True, help_text="The call rule that asks.")


class CallResolutionOutput(serializers.Serializer[Any]):
    """What becomes of a call whose outcome is not known."""

    due_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField(allow_null=True)


class ToolResultOutput(serializers.Serializer[Any]):
    content = serializers.ListField(child=ContentPartField())
    truncated = serializers.BooleanField()
    structured = serializers.JSONField(required=False, allow_null=True)
    structured_problem = serializers.CharField(required=False, allow_null=True)
    cached_at = serializers.DateTimeField(required=False, allow_null=True)


class AnnotationsOutput(serializers.Serializer[Any]):
    """What the tool's server says about it; null or absent where it says nothing."""

    read_only = serializers.BooleanField(required=False, allow_null=True)  # type: ignore[assignment]  # the name on the wire
    destructive = serializers.BooleanField(required=False, allow_null=True)
    idempotent = serializers.BooleanField(required=False, allow_null=True)
    open_world = serializers.BooleanField(required=False, allow_null=True)


class ArtifactRefOutput(serializers.Serializer[Any]):
    """A version of a file, as a tool call names it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    version = serializers.IntegerField()
    kind = serializers.ChoiceField(ARTIFACT_KINDS)
    content_type = serializers.CharField()
    size = serializers.IntegerField()


class ToolCallOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    turn_id = serializers.UUIDField()
    message_id = serializers.UUIDField()
    position = serializers.IntegerField()
    server = NamedRef(allow_null=True)
    tool = ToolRef()
    builtin = serializers.CharField(
        allow_null=True, help_text="The platform's own tool that was asked for, if it was one."
    )
    artifact = ArtifactRefOutput(
        allow_null=True, help_text="The file's version that the call sends, read or made."
    )
    annotations = AnnotationsOutput()
    arguments = serializers.DictField()
    proposed_arguments = serializers.DictField()
    input_schema = serializers.DictField(allow_null=True)
    status = serializers.ChoiceField(TOOL_CALL_STATUSES)
    approval = ApprovalOutput(allow_null=True)
    resolution = CallResolutionOutput(allow_null=True)
    repeats = serializers.UUIDField(
        allow_null=True, help_text="The call in whose place this one was made."
    )
    result = ToolResultOutput(allow_null=True)
    cached_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)

    def to_representation(self, instance: ToolCall) -> dict[str, Any]:
        return payloads.tool_call_json(instance)


class QueuedAttachment(serializers.Serializer[Any]):
    """A resource of a server, or a file of the conversation."""

    server_id = serializers.UUIDField(allow_null=True)
    uri = serializers.CharField(allow_null=True)
    artifact_id = serializers.UUIDField(allow_null=True)


class QueuedMessageOutput(serializers.Serializer[QueuedMessage]):
    """A message that waits for the running turn to end."""

    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField()
    client_id = serializers.CharField()
    text = serializers.CharField()
    attachments = QueuedAttachment(many=True)
    is_next = serializers.BooleanField(help_text="It interrupts what runs.")
    held_after = serializers.ChoiceField(
        choices=TURN_STATUSES,
        allow_null=True,
        help_text="How the turn ended after which it was not sent: only its writer sends it. Null: it waits its turn.",
    )
    bud_id = serializers.UUIDField(
        allow_null=True, help_text="The bud that answers in place of the conversation's."
    )
    compare = ChosenModelOutput(
        many=True, help_text="Models that answer side by side; mostly none."
    )
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: QueuedMessage) -> dict[str, Any]:
        return payloads.queued_json(instance)


class SignInOutput(serializers.Serializer[Any]):
    """Where a person signs in to the server that a call waits for."""

    path = serializers.CharField(help_text="The page on this platform where it begins.")
    may_connect = serializers.BooleanField(
        help_text="False: it is the workspace's account, which an administrator connects."
    )


class InputRequestOutput(serializers.Serializer[Any]):
    """What a server asked the caller during a call."""

    id = serializers.UUIDField()
    call_id = serializers.UUIDField()
    conversation_id = serializers.UUIDField(allow_null=True)
    server = ServerName()
    tool = serializers.CharField(allow_blank=True)
    kind = serializers.ChoiceField(["form", "url", "sampling", "sign_in"])
    message = serializers.CharField(allow_blank=True)
    schema = serializers.DictField(help_text="The form that was asked for, as JSON schema.")
    url = serializers.CharField(allow_blank=True)
    url_host = serializers.CharField(allow_blank=True)
    warnings = serializers.ListField(child=serializers.CharField())
    params = serializers.DictField(
        help_text="Sampling: what the model would be asked. Sign-in: host, scopes, account (user or workspace), reason."
    )
    model = serializers.CharField(allow_blank=True, help_text="Sampling: which model.")
    sign_in = SignInOutput(
        allow_null=True, help_text="Of an open sign-in. It is settled by signing in, or declined."
    )
    status = serializers.ChoiceField(_choices(InputStatus))
    answer = serializers.DictField(allow_null=True)
    expires_at = serializers.DateTimeField()
    answered_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: InputRequest) -> dict[str, Any]:
        return payloads.input_request_json(instance)


class SentOutput(serializers.Serializer[Mapping[str, Any]]):
    """A message that was taken in with the turn that answers it, or that waits in the queue."""

    message = MessageOutput(allow_null=True)
    turn = TurnOutput(allow_null=True)
    compared = TurnOutput(many=True, help_text="The turns of the other models, if you compare.")
    queued = QueuedMessageOutput(allow_null=True)


class OlderOutput(serializers.Serializer[Any]):
    """A part of the shown path, oldest first, with what belongs to it; empty at the beginning."""

    messages = MessageOutput(many=True)
    turns = TurnOutput(many=True)
    tool_calls = ToolCallOutput(many=True)

    def to_representation(self, instance: SnapshotPart) -> dict[str, Any]:
        return asdict(instance)


def sent_json(sent: SentTurn | QueuedSend) -> dict[str, Any]:
    """What `SentOutput` describes."""
    if isinstance(sent, QueuedSend):
        queued = payloads.queued_json(sent.message)
        return {"message": None, "turn": None, "compared": [], "queued": queued}
    attached = payloads.attachments_of(sent.message.workspace_id, [sent.message])
    message = payloads.message_json(sent.message, attachments=attached.get(sent.message.pk, ()))
    compared = [payloads.turn_json(one) for one in compared_with(sent.turn)]
    turn = payloads.turn_json(sent.turn)
    return {"message": message, "turn": turn, "compared": compared, "queued": None}


class AttachedName(serializers.Serializer[Any]):
    """A resource of one of the conversation's servers, or a file of the conversation."""

    server_id = serializers.UUIDField(required=False, help_text="Of a resource.")
    uri = serializers.CharField(max_length=LONGEST_URI, required=False, help_text="Of a resource.")
    resource_id = serializers.UUIDField(required=False, allow_null=True)
    artifact_id = serializers.UUIDField(
        required=False, help_text="Of a file. Upload it before you send the message."
    )
    version = serializers.IntegerField(
        min_value=1, required=False, allow_null=True, help_text="Of a file; without it the newest."
    )

    shown: ClassVar[frozenset[str]] = frozenset()
    """Further fields, which only say how it looks."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either the one or the other, whole."""
        names = set(attrs) - self.shown
        is_file = names <= {"artifact_id", "version"} and "artifact_id" in names
        is_resource = {"server_id", "uri"} <= names <= {"server_id", "uri", "resource_id"}
        if not (is_file or is_resource):
            raise serializers.ValidationError(
                "Give server_id and uri of a resource, or artifact_id of a file."
            )
        return attrs
