"""How the caller is reminded by mail, over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ReminderChoice
from chat.reminders.choices import ReminderDraft, choice_of, choose
from workspaces.api import Scopes, WorkspaceViewSet


@extend_schema_field(OpenApiTypes.STR)
class ClockField(serializers.TimeField):
    """A time on somebody's clock, such as 22:00. The schema's own format `time` would need an offset."""


@extend_schema_serializer(many=False)
class Reminders(serializers.Serializer[Any]):
    """When the caller is mailed what waits for them, and which answers are finished."""

    mail_after = serializers.ChoiceField(
        choices=ReminderChoice.After.choices, help_text="Minutes; 0: never."
    )
    answers_after = serializers.ChoiceField(
        choices=ReminderChoice.After.choices,
        default=ReminderChoice.After.NEVER.value,
        help_text="Minutes after the end of an answer that took over 10 seconds and was seen on no device; 0: never.",
    )
    quiet_from = ClockField(
        allow_null=True,
        default=None,
        help_text="HH:MM. No mails and notifications from then on, by the caller's clock.",
    )
    quiet_to = ClockField(allow_null=True, default=None, help_text="HH:MM.")
    time_zone = serializers.CharField(
        max_length=64,
        required=False,
        help_text="Of the quiet hours, such as Europe/Zurich. If the profile has one, it is that, and no other is taken.",
    )

    def to_representation(self, instance: ReminderChoice) -> Any:
        return {**super().to_representation(instance), "time_zone": instance.zone}


class ReminderViewSet(WorkspaceViewSet):
    """The caller's own choice."""

    model = ReminderChoice
    scopes = Scopes(read="chat", write="chat")
    serializer_class = Reminders
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=Reminders, filters=False, operation_id="reminders_retrieve")
    def list(self, request: Request) -> Response:
        """What holds: the caller's choice, or the usual one."""
        return Response(Reminders(choice_of(workspace=self.workspace, person=self.person)).data)

    @extend_schema(request=Reminders, responses={200: Reminders})
    def create(self, request: Request) -> Response:
        """Keep a choice in place of the one before."""
        draft = ReminderDraft(**self.read(Reminders))
        kept = choose(workspace=self.workspace, person=self.person, draft=draft, actor=self.actor)
        return Response(Reminders(kept).data)
