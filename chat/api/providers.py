"""Model providers over REST: look, and test the connection. Keys are never given."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ModelProvider
from chat.services.provider_check import check_provider, keep_facts
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet


class ProviderOutput(serializers.ModelSerializer[ModelProvider]):
    """A provider without its key."""

    has_key = serializers.SerializerMethodField()

    class Meta:
        model = ModelProvider
        fields = ("id", "name", "base_url", "default_model", "is_active", "has_key")
        read_only_fields = fields

    def get_has_key(self, provider: ModelProvider) -> bool:
        return bool(provider.api_key)


class ListedModelOutput(serializers.Serializer[Any]):
    """A model as its provider tells of it; null where it says nothing."""

    name = serializers.CharField()
    context_tokens = serializers.IntegerField(allow_null=True)
    sees_pictures = serializers.BooleanField(allow_null=True)
    calls_tools = serializers.BooleanField(allow_null=True)
    reasons = serializers.BooleanField(allow_null=True)
    prompt_price = serializers.DecimalField(
        max_digits=12, decimal_places=6, allow_null=True, help_text="Per million tokens."
    )
    completion_price = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)


class ListingOutput(serializers.Serializer[Any]):
    """What a provider answered."""

    took_ms = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Models beyond the first 500.")
    models = ListedModelOutput(many=True)


class CheckInput(serializers.Serializer[Any]):
    keep = serializers.ListField(
        child=serializers.CharField(max_length=200),
        max_length=500,
        required=False,
        help_text="Models to take into the table of models and prices. What was entered there stays.",
    )


class ProviderViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The workspace's model providers, for those who manage buds."""

    model = ModelProvider
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = ProviderOutput
    orderings: ClassVar[Any] = ("name", "-id")

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        rows = super().get_queryset()
        if not getattr(self, "swagger_fake_view", False):
            require(self.actor, Permission.MANAGE_BUDS, workspace_id=self.workspace.pk)
        return rows

    @extend_schema(request=CheckInput, responses=ListingOutput)
    @action(detail=True, methods=["post"])
    def check(self, request: Request, pk: str) -> Response:
        """Ask the provider for its models; 502 with the reason if it does not answer."""
        names = self.read(CheckInput).get("keep", [])
        provider = self.get_object()
        listing = check_provider(provider=provider, actor=self.actor)
        if names:
            keep_facts(provider=provider, names=names, listing=listing, actor=self.actor)
        return Response(ListingOutput(listing).data)
