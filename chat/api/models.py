"""The models that people may choose among, over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ProviderModel
from chat.services.models import models_of
from workspaces.api import Scopes, WorkspaceViewSet


class ModelOutput(serializers.Serializer[Any]):
    """A model; null where nobody has said."""

    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    name = serializers.CharField()
    provider_name = serializers.CharField()
    is_demo = serializers.BooleanField()
    context_tokens = serializers.IntegerField(
        allow_null=True, help_text="How much it reads and writes at most."
    )
    sees_pictures = serializers.BooleanField(allow_null=True)
    calls_tools = serializers.BooleanField(
        allow_null=True, help_text="As an administrator says, else as its provider tells."
    )
    gets_tools = serializers.BooleanField(
        help_text="False: an administrator has said that it calls none, so it is offered none."
    )
    reasons = serializers.BooleanField(
        allow_null=True, help_text="Whether it thinks before it answers; from the same sources."
    )
    prompt_price = serializers.DecimalField(
        max_digits=12, decimal_places=6, allow_null=True, help_text="Per million tokens."
    )
    completion_price = serializers.DecimalField(
        max_digits=12, decimal_places=6, allow_null=True, help_text="Per million tokens."
    )
    prices_listed_on = serializers.DateField(
        allow_null=True,
        help_text="The day of the provider's list that the prices are from. Null: the workspace has entered them, or there are none.",
    )
    ends_on = serializers.DateField(
        allow_null=True,
        help_text="The day from which its provider serves it no more, as far as Trellis knows it.",
    )
    gone_since = serializers.DateField(
        allow_null=True, help_text="Since when its provider has not listed it any more."
    )


class ModelViewSet(WorkspaceViewSet):
    """The models of the workspace's providers that are on, and the platform's own."""

    model = ProviderModel
    scopes = Scopes(read="chat", write="chat")
    pagination_class = None  # a short list, given whole
    serializer_class = ModelOutput

    @extend_schema(responses=ModelOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """Every model that a conversation may be given."""
        return Response(ModelOutput(models_of(self.workspace.pk), many=True).data)
