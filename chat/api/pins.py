"""A person's pinned buds and models over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import Pin
from chat.services.pins import pins_of, set_bud_pin, set_model_pin
from workspaces.api import Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput


class PinInput(serializers.Serializer[Any]):
    bud_id = serializers.UUIDField(allow_null=True, default=None, help_text="To pin a bud.")
    provider_id = serializers.UUIDField(
        allow_null=True, default=None, help_text="To pin a model. Null: the platform's own."
    )
    model = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="To pin a model: its name."
    )
    is_pinned = serializers.BooleanField(help_text="False: take the pin away.")


class PinOutput(serializers.Serializer[Any]):
    """A pinned bud, or a pinned model."""

    bud_id = serializers.UUIDField(allow_null=True, help_text="Null: it is a model.")
    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    model = serializers.CharField(allow_blank=True)


class PinViewSet(WorkspaceViewSet):
    """The caller's own pins: what stands first where they choose who answers."""

    model = Pin
    scopes = Scopes(read="chat", write="chat")
    serializer_class = PinOutput
    pagination_class = None  # as the framework means it
    parameters: ClassVar[Any] = {}

    @extend_schema(responses=PinOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """All of them, oldest first."""
        return Response(PinOutput(pins_of(self.workspace, self.person), many=True).data)

    @extend_schema(request=PinInput, responses={200: PinOutput(many=True)})
    def create(self, request: Request) -> Response:
        """Pin a bud or a model, or take its pin away; gives all pins."""
        values = self.read(PinInput)
        bud_id, provider_id, model = values["bud_id"], values["provider_id"], values["model"]
        if (bud_id is None) == (not model) or (bud_id is not None and provider_id is not None):
            raise InvalidInput(_("Give either a bud, or a model with its provider."))
        if bud_id is not None:
            set_bud_pin(
                workspace=self.workspace,
                owner=self.person,
                actor=self.actor,
                bud_id=bud_id,
                is_pinned=values["is_pinned"],
            )
        else:
            set_model_pin(
                workspace=self.workspace,
                owner=self.person,
                actor=self.actor,
                provider_id=provider_id,
                model=model,
                is_pinned=values["is_pinned"],
            )
        return self.list(request)
