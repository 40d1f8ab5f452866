"""The shapes of the platform's model providers in the API's schema."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.api.providers import ListingOutput
from chat.models import ModelProvider, OfferedModels, SharedProvider, WithheldReason
from chat.models.spending import MOST_COST, MOST_TOKENS
from chat.pages.shared_provider_form import OwnModels
from chat.services.parts_of_shared import MOST_CHOSEN
from chat.services.providers import LONGEST_KEY
from workspaces.secret_memory import without_secrets

_LONGEST_MODEL = 200
_TAKES_AWAY = "Take models away although buds, chats or searches use them. Without it, that is a 422 here which tells how many do."


def _limit(most: int, about: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=1, max_value=most, allow_null=True, required=False, help_text=about
    )


def _names(about: str) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=_LONGEST_MODEL),
        max_length=MOST_CHOSEN,
        required=False,
        help_text=about,
    )


class SharedProviderOutput(serializers.ModelSerializer[SharedProvider]):
    """A provider that the platform's owner shares, without its key."""

    base_url = serializers.SerializerMethodField()
    has_key = serializers.SerializerMethodField()
    offer = serializers.ChoiceField(
        OfferedModels.values, allow_blank=True, read_only=True, help_text="Empty: all models."
    )
    chosen_models = serializers.ListField(child=serializers.CharField(), read_only=True)
    workspaces = serializers.IntegerField(read_only=True, help_text="That may use it.")

    class Meta:
        model = SharedProvider
        fields: ClassVar[Any] = (
            *("id", "name", "base_url", "has_key", "default_model", "is_active", "is_for_all"),
            *("offer", "chosen_models", "most_at_once", "most_a_minute", "workspaces"),
            *("created_at", "updated_at"),
        )
        read_only_fields = fields

    def get_base_url(self, shared: SharedProvider) -> str:
        return without_secrets(shared.base_url)

    def get_has_key(self, shared: SharedProvider) -> bool:
        return bool(shared.api_key)


class LoadOutput(serializers.Serializer[Any]):
    """Requests now, of all processes."""

    running = serializers.IntegerField()
    waiting = serializers.IntegerField()
    in_last_minute = serializers.IntegerField()


class UsesOutput(serializers.Serializer[Any]):
    """What would get no answers without it."""

    buds = serializers.IntegerField()
    chats = serializers.IntegerField()


class SharedProviderDetailOutput(SharedProviderOutput):
    """A provider that is shared, with what uses it and how busy it is."""

    uses = UsesOutput()
    load = LoadOutput()

    class Meta(SharedProviderOutput.Meta):
        fields: ClassVar[Any] = (*SharedProviderOutput.Meta.fields, "uses", "load")
        read_only_fields = fields


class SharedProviderChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    name = serializers.CharField(max_length=80)
    base_url = serializers.CharField(
        max_length=500, help_text="Another address for a stored one takes a signed-in person."
    )
    default_model = serializers.CharField(max_length=_LONGEST_MODEL)
    offer = serializers.ChoiceField(
        OfferedModels.values,
        allow_blank=True,
        required=False,
        help_text="Which models workspaces may use: empty for all, `default` or `chosen`.",
    )
    chosen_models = _names("With the default model. They count where the offer is `chosen`.")
    is_for_all = serializers.BooleanField(
        required=False, help_text="For every workspace, also for those that are made later."
    )
    most_at_once = _limit(1000, "Requests at once, of all workspaces together. null: no limit.")
    most_a_minute = _limit(
        100_000, "Requests a minute, of all workspaces together. null: no limit."
    )
    api_key = serializers.CharField(
        max_length=LONGEST_KEY,
        allow_blank=True,
        required=False,
        write_only=True,
        help_text="Tried first. Left out: the stored one stays, as long as the address is of the same origin.",
    )
    untested_key = serializers.BooleanField(
        required=False, help_text="Store the key without a test, as while the provider is down."
    )
    takes_away = serializers.BooleanField(required=False, help_text=_TAKES_AWAY)


class SharedProviderInput(SharedProviderChanges):
    """A provider to share. Its key is tried first."""

    takes_away = None  # type: ignore[assignment]  # nobody uses it yet


class SwitchInput(serializers.Serializer[Any]):
    is_active = serializers.BooleanField()


class WorkspaceChoice(serializers.Serializer[Any]):
    workspace = serializers.UUIDField()


class ProviderTrialOutput(serializers.Serializer[Any]):
    """Whether it answers. Each fault is empty where there was none."""

    listing = ListingOutput(allow_null=True, help_text="Null: it told no models.")
    list_fault = serializers.CharField(
        help_text="Why not; some have no list, and answer all the same."
    )
    took_ms = serializers.IntegerField(help_text="Until its default model had said a word.")
    fault = serializers.CharField(help_text="Why it did not.")


class WorkspaceUsageOutput(serializers.Serializer[Any]):
    """What one workspace asked of it."""

    workspace = serializers.UUIDField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    questions = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(
        max_digits=20, decimal_places=6, allow_null=True, help_text="Null: no prices are known."
    )


class SharedUsageOutput(serializers.Serializer[Any]):
    """What workspaces asked of it, those that ask most first."""

    days = serializers.IntegerField()
    workspaces = WorkspaceUsageOutput(many=True, source="rows")
    left_out = serializers.IntegerField(help_text="Further workspaces.")


class PartOutput(serializers.ModelSerializer[ModelProvider]):
    """What one workspace may have of a shared provider."""

    workspace = serializers.UUIDField(source="workspace_id", read_only=True)
    name = serializers.CharField(source="workspace.name", read_only=True)
    slug = serializers.CharField(source="workspace.slug", read_only=True)
    provider = serializers.UUIDField(
        source="pk", read_only=True, help_text="Its id among the workspace's own providers."
    )
    withheld = serializers.ChoiceField(
        WithheldReason.values,
        allow_blank=True,
        read_only=True,
        help_text="Why it cannot use it: `off` or `withdrawn`. Empty: it can.",
    )
    own_models = serializers.SerializerMethodField(
        help_text="Empty: those that all workspaces may use. `all` or `chosen`: its own choice."
    )
    offered_models = serializers.ListField(
        child=serializers.CharField(), read_only=True, allow_null=True, help_text="Null: all."
    )
    uses = serializers.SerializerMethodField()
    load = serializers.SerializerMethodField(help_text="Null: it has no limits of its own.")

    class Meta:
        model = ModelProvider
        fields = (
            *("workspace", "name", "slug", "provider", "withheld", "own_models", "offered_models"),
            *("most_at_once", "most_a_minute", "most_cost_a_month", "most_tokens_a_month"),
            *("uses", "load"),
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(OwnModels.values, allow_blank=True))
    def get_own_models(self, row: ModelProvider) -> str:
        if not row.has_own_offer:
            return OwnModels.FOLLOWS.value
        return (OwnModels.ALL if row.offered_models is None else OwnModels.CHOSEN).value

    @extend_schema_field(UsesOutput)
    def get_uses(self, row: ModelProvider) -> Any:
        return UsesOutput(self.context["uses"][row.workspace_id]).data

    @extend_schema_field(LoadOutput(allow_null=True))
    def get_load(self, row: ModelProvider) -> Any:
        found = self.context["loads"].get(row.pk)
        return LoadOutput(found).data if found is not None else None


class PartChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    own_models = serializers.ChoiceField(
        OwnModels.values,
        allow_blank=True,
        required=False,
        help_text="Empty: those that all workspaces may use.",
    )
    chosen_models = _names("They count where `own_models` is `chosen`.")
    most_at_once = _limit(1000, "Requests at once, of this workspace. null: no limit of its own.")
    most_a_minute = _limit(
        100_000, "Requests a minute, of this workspace. null: no limit of its own."
    )
    most_cost_a_month = serializers.DecimalField(
        max_digits=14,
        decimal_places=6,
        min_value=Decimal(0),
        max_value=Decimal(MOST_COST),
        allow_null=True,
        required=False,
        help_text="In US dollars by list prices, in a calendar month. null: no limit; 0: nothing.",
    )
    most_tokens_a_month = serializers.IntegerField(
        min_value=0,
        max_value=MOST_TOKENS,
        allow_null=True,
        required=False,
        help_text="Tokens in a calendar month. null: no limit; 0: nothing.",
    )
    takes_away = serializers.BooleanField(required=False, help_text=_TAKES_AWAY)


class EnvironmentSettingOutput(serializers.Serializer[Any]):
    """A variable of the environment. Of a key there is no value."""

    variable = serializers.CharField()
    value = serializers.CharField()
    is_set = serializers.BooleanField()


class EnvironmentProviderOutput(serializers.Serializer[Any]):
    """The provider that the environment gives to all workspaces, without its key."""

    name = serializers.CharField()
    is_demo = serializers.BooleanField(help_text="No provider is set: the built-in model answers.")
    base_url = serializers.CharField()
    has_key = serializers.BooleanField()
    default_model = serializers.CharField()
    embedding_model = serializers.CharField(help_text="Empty: knowledge is found by words only.")
    variables = EnvironmentSettingOutput(many=True)
    load = LoadOutput(allow_null=True, help_text="Null: the built-in model has none.")
