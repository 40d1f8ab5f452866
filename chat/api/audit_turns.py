"""Turns as the log's readers see them, over REST."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Turn
from chat.services.turn_record import MOST_ENTRIES, TurnRecord, read_turn
from chat.values import TurnStatus
from workspaces.api import Scopes, WorkspaceViewSet


class SpanOutput(serializers.Serializer[Any]):
    """A piece of a turn's time, in milliseconds after the question."""

    kind = serializers.ChoiceField(["model", "tool", "wait"])
    label = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # a field of that name
    start = serializers.IntegerField()
    length = serializers.IntegerField()
    call_id = serializers.UUIDField(allow_null=True)


class SentMessageOutput(serializers.Serializer[Any]):
    role = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    calls = serializers.ListField(child=serializers.CharField())
    request = serializers.IntegerField(
        allow_null=True,
        help_text="Which request of the turn this message answers; the request held all messages before it. Null: none.",
    )


class ContentsOutput(serializers.Serializer[Any]):
    """What was said. The prompt is built again from what is stored."""

    question = serializers.CharField(allow_blank=True)
    answer = serializers.CharField(allow_blank=True)
    prompt = SentMessageOutput(many=True)
    left_out = serializers.IntegerField(help_text="Older messages of the prompt, not given here.")
    is_bud_changed = serializers.BooleanField(
        help_text="The bud was changed since, so its instructions may have been others."
    )


class TurnRecordOutput(serializers.Serializer[Any]):
    """A turn. Null where the conversation is gone, or the caller may not read it."""

    id = serializers.UUIDField()
    conversation_id = serializers.UUIDField(allow_null=True)
    status = serializers.ChoiceField([one.value for one in TurnStatus], allow_null=True)
    model = serializers.CharField(allow_null=True)
    prompt_tokens = serializers.IntegerField(allow_null=True)
    completion_tokens = serializers.IntegerField(allow_null=True)
    cost = serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True)
    total_ms = serializers.IntegerField()
    spans = SpanOutput(many=True)
    contents = ContentsOutput(allow_null=True)
    compared_with = serializers.ListField(
        child=serializers.UUIDField(),
        help_text="Turns of other models that answered the same question side by side.",
    )
    entry_ids = serializers.ListField(
        child=serializers.UUIDField(), help_text=f"The newest first, at most {MOST_ENTRIES}."
    )
    has_more_entries = serializers.BooleanField(help_text="The log has older ones.")

    def to_representation(self, instance: TurnRecord) -> dict[str, Any]:
        turn = instance.turn
        shown: dict[str, Any] = super().to_representation(
            {
                "id": instance.id,
                "conversation_id": turn.conversation_id if turn else None,
                "status": turn.status if turn else None,
                "model": turn.model if turn else None,
                "prompt_tokens": turn.prompt_tokens if turn else None,
                "completion_tokens": turn.completion_tokens if turn else None,
                "cost": turn.cost if turn else None,
                "total_ms": instance.total_ms,
                "spans": [asdict(span) for span in instance.spans],
                "contents": asdict(instance.contents) if instance.contents else None,
                "compared_with": [one.pk for one in instance.beside],
                "entry_ids": [entry.pk for entry in instance.entries],
                "has_more_entries": instance.has_more_entries,
            }
        )
        return shown


class AuditTurnViewSet(WorkspaceViewSet):
    """Turns, for those who may see the log. Auditors see what was said; reading it is itself recorded."""

    model = Turn
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = TurnRecordOutput

    @extend_schema(summary="Read one turn of the log", tags=["audit"], responses=TurnRecordOutput)
    def retrieve(self, request: Request, pk: UUID) -> Response:
        """Give one turn with its times and, to those who may read them, its contents."""
        found = read_turn(workspace_id=self.workspace.pk, turn_id=pk, actor=self.actor)
        return Response(TurnRecordOutput(found).data)
