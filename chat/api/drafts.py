"""A person's drafts over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.api.shapes import AttachedName
from chat.engine.attaching import MOST_ATTACHMENTS
from chat.models import Draft
from chat.services.drafts import Chosen, ChosenFile, ChosenResource, keep_draft
from chat.services.turns import LONGEST_MESSAGE
from workspaces.api import Scopes, WorkspaceViewSet

MOST_DRAFTS = 200


class DraftAttachment(AttachedName):
    """A file or a resource that was chosen, and how the page shows it."""

    title = serializers.CharField(max_length=500)
    server_name = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="Of a resource."
    )
    kind = serializers.CharField(max_length=50, required=False, help_text="Of a file.")
    size = serializers.IntegerField(min_value=0, required=False, help_text="Of a file, in bytes.")
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="Of a file, which needs one: the draft keeps it."
    )
    is_new = serializers.BooleanField(
        required=False,
        help_text="Of a file: it was uploaded for this draft, and no message has it yet.",
    )
    shown = frozenset({"title", "server_name", "kind", "size", "is_new"})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """A file is kept in the version that was chosen."""
        if "artifact_id" in attrs and "version" not in attrs:
            raise serializers.ValidationError({"version": "Say which version of the file."})
        return super().validate(attrs)

    def to_representation(self, instance: dict[str, Any]) -> dict[str, Any]:
        """As it was kept."""
        return instance


def _chosen(values: dict[str, Any]) -> Chosen:
    if "artifact_id" in values:
        file = {"kind": "file", "size": 0, "is_new": False, **values}
        return ChosenFile(**{name: file[name] for name in ChosenFile.__slots__})
    resource = {"server_name": "", "resource_id": None, **values}
    return ChosenResource(**{name: resource[name] for name in ChosenResource.__slots__})


class DraftInput(serializers.Serializer[Any]):
    conversation_id = serializers.UUIDField(allow_null=True, help_text="Null: the start page.")
    text = serializers.CharField(
        max_length=LONGEST_MESSAGE,
        trim_whitespace=False,
        allow_blank=True,
        help_text="Empty: it was sent or removed.",
    )
    attachments = serializers.ListField(
        child=DraftAttachment(), required=False, max_length=MOST_ATTACHMENTS
    )
    written_at = serializers.DateTimeField(help_text="When, by your clock.")
    base_version = serializers.IntegerField(
        min_value=0,
        required=False,
        help_text="The version that you have seen, 0 for none. If there is another one, it stays, and you get it"
        " to merge. Without it the last writer wins by time.",
    )


class DraftOutput(serializers.Serializer[Any]):
    """What stands in a message field."""

    conversation_id = serializers.UUIDField(allow_null=True)
    text = serializers.CharField(allow_blank=True)
    attachments = DraftAttachment(many=True)
    written_at = serializers.DateTimeField()
    version = serializers.IntegerField(help_text="Counts the changes.")


class DraftViewSet(WorkspaceViewSet):
    """The caller's own drafts."""

    model = Draft
    scopes = Scopes(read="chat", write="chat")
    serializer_class = DraftOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=DraftOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """The newest 200, removed ones too: a device learns from them that its own is out of date."""
        rows = Draft.objects.for_workspace(self.workspace).visible_to(self.person)
        rows = rows.filter(owner=self.person)[:MOST_DRAFTS]
        return Response(DraftOutput(rows, many=True).data)

    @extend_schema(request=DraftInput, responses={200: DraftOutput})
    def create(self, request: Request) -> Response:
        """Keep a draft. The answer is what is kept: one that you have not seen stays."""
        values = self.read(DraftInput)
        values["attachments"] = [_chosen(one) for one in values.get("attachments", ())]
        kept = keep_draft(workspace=self.workspace, owner=self.person, actor=self.actor, **values)
        return Response(DraftOutput(kept).data)
