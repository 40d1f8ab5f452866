"""Model providers over REST. Keys are taken, and never given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ModelProvider
from chat.providers.known_lists import list_of, offered_changes
from chat.providers.shared import addresses_of
from chat.services.provider_check import (
    check_provider,
    keep_facts,
    rotate_key,
    try_draft,
    try_embedding,
)
from chat.services.provider_removal import remove_provider
from chat.services.providers import (
    LONGEST_KEY,
    ProviderDraft,
    add_provider,
    change_provider,
)
from workspaces.api import ListRows, RetrieveRow, Scopes, WorkspaceViewSet
from workspaces.errors import Conflict, NotFound
from workspaces.holding import hold
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_KEPT = (
    *("name", "base_url", "default_model", "is_active", "fallback_id"),
    *("most_at_once", "most_a_minute", "embedding_model"),
)


def _draft_of(provider: ModelProvider, given: Mapping[str, Any]) -> ProviderDraft:
    """What a provider shall be: what is given, and for the rest what it is."""
    kept = {name: getattr(provider, name) for name in _KEPT}
    return ProviderDraft(**{**kept, **given})


class ProviderOutput(serializers.ModelSerializer[ModelProvider]):
    """A provider without its key."""

    base_url = serializers.CharField(
        read_only=True, help_text="Empty where the platform's owner shares it, or no longer does."
    )
    has_key = serializers.SerializerMethodField()
    is_shared = serializers.BooleanField(
        read_only=True,
        help_text="The platform's owner shares it: `base_url` is empty, `has_key` false, and only they change name, address,"
        " key and limits.",
    )
    withheld = serializers.CharField(
        read_only=True,
        help_text="Why one that is shared does not answer: `off` or `withdrawn` by the platform's owner. Empty: it does, if"
        " `is_active`.",
    )

    offered_models = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        allow_null=True,
        help_text="Of one that is shared: the only models that the platform's owner lets this workspace use. Null: all."
        " `most_at_once` and `most_a_minute` are then what they let it send.",
    )

    class Meta:
        model = ModelProvider
        fields = (
            *("id", "name", "base_url", "default_model", "is_active", "fallback"),
            *("most_at_once", "most_a_minute", "embedding_model", "has_key"),
            *("is_shared", "withheld", "offered_models"),
        )
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
    embeds = serializers.BooleanField(
        help_text="Whether it can be the `embedding_model`, as its name tells."
    )
    prompt_price = serializers.DecimalField(
        max_digits=12, decimal_places=6, allow_null=True, help_text="Per million tokens."
    )
    completion_price = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)


class EmbeddingTrialOutput(serializers.Serializer[Any]):
    """How the provider's embedding model answered."""

    model = serializers.CharField()
    took_ms = serializers.IntegerField()
    numbers = serializers.IntegerField(help_text="In its vectors.")
    fault = serializers.CharField(help_text="Why it did not answer; empty: it did.")


class ListingOutput(serializers.Serializer[Any]):
    """What a provider answered."""

    took_ms = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="Models beyond the first 500.")
    models = ListedModelOutput(many=True)


class CheckOutput(ListingOutput):
    """The same, with its embedding model tried."""

    embedding = EmbeddingTrialOutput(allow_null=True, help_text="null: it names none.")


class ListChangesOutput(serializers.Serializer[Any]):
    """What changed in a provider's list of models. Names and days; the newest first."""

    asked_at = serializers.DateTimeField(help_text="Trellis asks once a day.")
    listed_at = serializers.DateTimeField(
        allow_null=True, help_text="When it last gave a list. Null: never."
    )
    fault = serializers.CharField(help_text="Why it gave none when it was asked; empty: it did.")
    new = serializers.DictField(child=serializers.DateField())
    gone = serializers.DictField(child=serializers.DateField())
    ends = serializers.DictField(
        child=serializers.DateField(), help_text="From when the provider serves a model no more."
    )


class CheckInput(serializers.Serializer[Any]):
    keep = serializers.ListField(
        child=serializers.CharField(max_length=200),
        max_length=500,
        required=False,
        help_text="Models to take into the table of models and prices. What was entered there stays.",
    )


class ProviderInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    base_url = serializers.CharField(max_length=500)
    default_model = serializers.CharField(max_length=200)
    is_active = serializers.BooleanField(default=True)
    fallback = serializers.UUIDField(
        source="fallback_id",
        allow_null=True,
        required=False,
        help_text="The provider that answers, with its default model, while this one is down, has too many requests or no credit.",
    )
    most_at_once = serializers.IntegerField(
        min_value=1,
        max_value=1000,
        allow_null=True,
        required=False,
        help_text="Requests at once; further ones wait their turn for up to a minute. null: no limit.",
    )
    most_a_minute = serializers.IntegerField(
        min_value=1,
        max_value=100_000,
        allow_null=True,
        required=False,
        help_text="Requests a minute, of all people and processes together. null: no limit.",
    )
    embedding_model = serializers.CharField(
        max_length=200,
        allow_blank=True,
        required=False,
        help_text="With one, buds also find passages of their knowledge files that say the same in other words. Their whole"
        " text and each search then go to this provider. Empty: they are searched by words only.",
    )
    api_key = serializers.CharField(
        max_length=LONGEST_KEY,
        allow_blank=True,
        default="",
        write_only=True,
        help_text="Left out: the stored one stays, as long as the address is of the same origin. A provider that is changed"
        " is asked with the new one first.",
    )


_UNTESTED = "Store the key though the provider cannot be asked with it, as while it is down."


class ProviderChangeInput(ProviderInput):
    untested_key = serializers.BooleanField(default=False, help_text=_UNTESTED)


class KeyInput(serializers.Serializer[Any]):
    api_key = serializers.CharField(max_length=LONGEST_KEY, write_only=True)
    untested = serializers.BooleanField(default=False, help_text=_UNTESTED)


class ProviderViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The workspace's model providers, for those who manage buds."""

    model = ModelProvider
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = ProviderOutput
    orderings: ClassVar[Any] = ("name", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_BUDS, workspace_id=self.workspace.pk)
        return super().rows()

    @extend_schema(request=ProviderInput, responses={201: ProviderOutput})
    def create(self, request: Request) -> Response:
        """Add a provider."""
        draft = ProviderDraft(**self.read(ProviderInput))
        row = add_provider(workspace=self.workspace, draft=draft, actor=self.actor)
        return self.answer(row, status=201)

    @extend_schema(request=ProviderChangeInput, responses=ProviderOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a provider; what is left out stays. A new key is tried first, as in `rotate-key/`."""
        provider = self.get_object()
        given = self.read(ProviderChangeInput, partial=True)
        is_untested = given.pop("untested_key", False)
        tried = _draft_of(provider, given)
        if tried.api_key and not is_untested:
            try_draft(provider=provider, draft=tried, actor=self.actor)
        with transaction.atomic():
            hold(provider)
            draft = _draft_of(provider, given)
            if draft.api_key and draft.base_url != tried.base_url:
                raise Conflict(_("The provider's address changed in the meantime. Try again."))
            return self.answer(change_provider(provider=provider, draft=draft, actor=self.actor))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a provider, its key and its table of models. 409 while buds use it."""
        remove_provider(provider=self.get_object(), actor=self.actor)
        return Response(status=204)

    @extend_schema(request=KeyInput, responses=ListingOutput)
    @action(detail=True, methods=["post"], url_path="rotate-key")
    def rotate_key(self, request: Request, pk: str) -> Response:
        """Ask the default model for a word with a new key, and store it if that works.

        422 at `api_key` if the provider refuses it, 502 with the reason if it does not answer; the old key stays.
        Answers under way end with the old key.
        """
        given = self.read(KeyInput)
        listing = rotate_key(
            provider=self.get_object(),
            new_key=given["api_key"],
            actor=self.actor,
            is_tested=not given["untested"],
        )
        return Response(ListingOutput(listing).data)

    @extend_schema(responses=ListChangesOutput)
    @action(detail=True, methods=["get"], url_path="list-changes")
    def list_changes(self, request: Request, pk: str) -> Response:
        """Tell what changed in its list of models; 404 before it was asked for the first time."""
        provider = self.get_object()
        [address] = addresses_of([provider]).values()
        listed = list_of(provider, address)
        if listed is None:
            raise NotFound(_("This provider's list of models was not asked for yet."))
        changes = offered_changes(provider, listed.list_changes)
        values = {name: getattr(listed, name) for name in ("asked_at", "listed_at", "fault")}
        return Response(ListChangesOutput({**values, **changes.model_dump()}).data)

    @extend_schema(request=CheckInput, responses=CheckOutput)
    @action(detail=True, methods=["post"])
    def check(self, request: Request, pk: str) -> Response:
        """Ask the provider for its models; 502 with the reason if it does not answer."""
        names = self.read(CheckInput).get("keep", [])
        provider = self.get_object()
        listing = check_provider(provider=provider, actor=self.actor)
        if names:
            keep_facts(provider=provider, names=names, listing=listing, actor=self.actor)
        trial = try_embedding(provider=provider, actor=self.actor)
        embedding = EmbeddingTrialOutput(trial).data if trial is not None else None
        return Response({**ListingOutput(listing).data, "embedding": embedding})
