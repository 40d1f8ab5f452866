"""What is known of providers' models, and what they cost, over REST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar
from uuid import UUID

import django_filters
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ModelProvider, ProviderModel
from chat.services.offered_models import offered_models
from chat.services.provider_models import (
    KnownModelDraft,
    add_known_model,
    change_known_model,
    model_draft_of,
    remove_known_model,
)
from chat.values import ToolProtocol
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_PROTOCOLS = [one.value for one in ToolProtocol]
_PLATFORMS = "null: the platform's own provider."
_EXAMPLE = OpenApiExample(
    "A model with its prices",
    value={
        "provider_id": "0198c0de-0000-7000-8000-000000000001",
        "model": "large-2",
        "context_tokens": 128000,
        "prompt_price": "2.50",
        "cached_price": "0.25",
        "completion_price": "10.00",
        "calls_tools": True,
    },
    request_only=True,
)


class ProviderModelOutput(serializers.ModelSerializer[ProviderModel]):
    """A model, with what the workspace entered of it. `null` where nobody said."""

    provider_id = serializers.UUIDField(read_only=True, allow_null=True, help_text=_PLATFORMS)
    told_calls_tools = serializers.BooleanField(
        read_only=True,
        allow_null=True,
        help_text="What the provider tells, where `calls_tools` is null.",
    )
    told_reasons = serializers.BooleanField(
        read_only=True,
        allow_null=True,
        help_text="What the provider tells, where `reasons` is null.",
    )

    learned_protocol = serializers.ChoiceField(
        _PROTOCOLS, read_only=True, allow_blank=True, help_text="Empty: nothing has been found out."
    )

    class Meta:
        model = ProviderModel
        fields = (
            *("id", "provider_id", "model", "context_tokens"),
            *("prompt_price", "cached_price", "completion_price"),
            *("sees_pictures", "calls_tools", "told_calls_tools", "reasons", "told_reasons"),
            *("learned_protocol", "created_at", "updated_at"),
        )
        read_only_fields = fields


def _price(description: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=12,
        decimal_places=6,
        min_value=0,
        allow_null=True,
        required=False,
        help_text=description,
    )


class ProviderModelInput(serializers.Serializer[Any]):
    """A model as somebody wants it. What is left out of a change stays; `null` takes back what was entered."""

    provider_id = serializers.UUIDField(allow_null=True, required=False, help_text=_PLATFORMS)
    model = serializers.CharField(max_length=200, help_text="By the provider's own name for it.")
    context_tokens = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        allow_null=True,
        required=False,
        help_text="How many tokens it reads and writes at most.",
    )
    prompt_price = _price(
        "In US dollars per million tokens. null: the provider's list price, if Trellis knows it."
    )
    cached_price = _price("Of prompt tokens that came out of the provider's cache.")
    completion_price = _price("As `prompt_price`, for what the model writes.")
    sees_pictures = serializers.BooleanField(
        allow_null=True, required=False, help_text="null: the first picture tries it."
    )
    calls_tools = serializers.BooleanField(
        allow_null=True,
        required=False,
        help_text="false: buds with this model get no tools. null: what the provider tells.",
    )
    reasons = serializers.BooleanField(
        allow_null=True,
        required=False,
        help_text="Whether it thinks before it answers. null: what the provider tells.",
    )
    learned_protocol = serializers.ChoiceField(
        _PROTOCOLS,
        allow_blank=True,
        required=False,
        help_text="The tool protocol that it was found to need. Empty: Trellis finds out anew.",
    )


class ProviderModelFilters(RowFilterSet):
    """What a list of models may be narrowed by."""

    provider = django_filters.UUIDFilter(field_name="provider_id")
    search = django_filters.CharFilter(
        field_name="model", lookup_expr="icontains", max_length=200, label="A part of its name."
    )


class ProviderModelViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The table of models and prices, for those who manage buds."""

    model = ProviderModel
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = ProviderModelOutput
    filterset_class = ProviderModelFilters
    orderings: ClassVar[Any] = ("model", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Without models that the platform's owner withholds."""
        require(self.actor, Permission.MANAGE_BUDS, workspace_id=self.workspace.pk)
        return offered_models(self.workspace.pk).select_related("provider")

    @extend_schema(
        request=ProviderModelInput, responses={201: ProviderModelOutput}, examples=[_EXAMPLE]
    )
    def create(self, request: Request) -> Response:
        """Add a model to the table."""
        empty = KnownModelDraft(
            provider=None,
            model="",
            context_tokens=None,
            prompt_price=None,
            cached_price=None,
            completion_price=None,
            sees_pictures=None,
            calls_tools=None,
            reasons=None,
            learned_protocol="",
        )
        draft = self._with_given(empty, self.read(ProviderModelInput))
        row = add_known_model(workspace_id=self.workspace.pk, draft=draft, actor=self.actor)
        return self.answer(row, status=201)

    @extend_schema(
        request=ProviderModelInput,
        responses=ProviderModelOutput,
        examples=[
            OpenApiExample("Another price", value={"prompt_price": "1.10"}, request_only=True)
        ],
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what is known of a model. A new price changes nothing that was counted."""
        row: ProviderModel = self.get_object()
        given = self.read(ProviderModelInput, partial=True)
        draft = self._with_given(model_draft_of(row), given)
        return self.answer(change_known_model(row=row, draft=draft, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Forget what is known of a model. Buds and chats that use it go on."""
        remove_known_model(row=self.get_object(), actor=self.actor)
        return Response(status=204)

    def _with_given(self, draft: KnownModelDraft, given: dict[str, Any]) -> KnownModelDraft:
        if "provider_id" in given:
            given["provider"] = self._provider(given.pop("provider_id"))
        return replace(draft, **given)

    def _provider(self, provider_id: UUID | None) -> ModelProvider | None:
        if provider_id is None:
            return None
        found: ModelProvider | None = ModelProvider.objects.for_workspace(self.workspace).find(
            provider_id
        )
        if found is None:
            raise InvalidInput(fields={"provider_id": [_("There is no such provider here.")]})
        return found
