"""The form of a model provider that the platform's owner shares."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models import ModelProvider, OfferedModels, SharedProvider
from chat.pages.spending_form import cost_field, token_field, typed_cost
from chat.pages.suggesting_inputs import ModelNameInput, SharedAddressInput
from chat.services.parts_of_shared import PartDraft
from chat.services.providers import LONGEST_KEY
from chat.services.shared_providers import SharedDraft
from workspaces.pages.numbers import WholeNumberField
from workspaces.pages.secret_fields import AsksForSecretsAgain
from workspaces.pages.seen_values import NoticesOthers

_OF_ROW: Final = (
    *("name", "base_url", "default_model", "offer", "is_for_all", "most_at_once", "most_a_minute"),
)
_NAMES: Final = 20_000
"""Characters of a list of models."""


def _lines(text: str) -> list[str]:
    return [name for line in text.splitlines() if (name := line.strip())]


def _names_field(help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=_("Names of the chosen models"),
        required=False,
        max_length=_NAMES,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=help_text,
    )


def _requests_at_once(help_text: Any) -> WholeNumberField:
    return WholeNumberField(
        label=_("Requests at once"),
        required=False,
        min_value=1,
        max_value=1000,
        help_text=help_text,
    )


def _requests_a_minute(help_text: Any) -> WholeNumberField:
    return WholeNumberField(
        label=_("Requests a minute"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=help_text,
    )


class _MayTakeAway(NoticesOthers, AsksForSecretsAgain, forms.Form):
    """A form that takes models away from buds and chats only after saying how many use them."""

    takes_away = forms.BooleanField(label=_("Take these models away all the same"), required=False)

    def __init__(self, *args: Any, asks_to_take_away: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        asked = self.fields.pop("takes_away")
        if asks_to_take_away:
            self.fields["takes_away"] = asked  # above the button that saves


class SharedProviderForm(_MayTakeAway):
    """The key goes in and never comes out."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Workspaces see it, such as “OpenAI”.")
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        widget=SharedAddressInput(attrs={"spellcheck": "false"}),
        help_text=_(
            "Type a provider's name and choose its address, or write another one. Most end with /v1. It may be on a"
            " private network. Workspaces never see it."
        ),
    )
    default_model = forms.CharField(
        label=_("Default model"),
        max_length=200,
        widget=ModelNameInput(attrs={"spellcheck": "false"}),
        help_text=_(
            "By the provider's own name for it. Below you say whether workspaces may use others, too."
        ),
    )
    offer = forms.ChoiceField(
        label=_("Models that workspaces may use"),
        required=False,
        choices=OfferedModels.choices,
        widget=forms.RadioSelect,
        help_text=_(
            "A workspace sees no others. On the provider's page you choose other ones for a workspace by its name."
        ),
    )
    chosen_models = _names_field(
        _(
            "One name in each line, as the provider spells it, with the default model. Models for embeddings count, too."
        )
    )
    api_key = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=LONGEST_KEY,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_(
            "Stored encrypted, and never shown again. Trellis first asks the default model for one word with it."
        ),
    )
    untested_key = forms.BooleanField(
        label=_("Store the key without a test"),
        required=False,
        help_text=_("For when the provider is down. Paste the key again."),
    )
    is_for_all = forms.BooleanField(
        label=_("For every workspace"),
        required=False,
        help_text=_(
            "Also for those that are made later. Otherwise you choose workspaces on the provider's page."
        ),
    )
    most_at_once = _requests_at_once(
        _(
            "Of all workspaces together. Further ones wait their turn for up to a minute. Leave empty for no limit."
        )
    )
    most_a_minute = _requests_a_minute(_("Of all workspaces together. Leave empty for no limit."))

    def __init__(
        self,
        *args: Any,
        shared: SharedProvider | None = None,
        may_skip_test: bool = False,
        **options: Any,
    ) -> None:
        if shared is not None:
            options["initial"] = {
                **{name: getattr(shared, name) for name in _OF_ROW},
                "chosen_models": "\n".join(shared.chosen_models),
            }
        super().__init__(*args, **options)
        if shared is not None and shared.api_key:
            self.fields["api_key"].label = _("New API key")
            self.fields["api_key"].help_text = _(
                "One is stored, and not shown. Leave empty to keep it. Trellis first asks the default model for one"
                " word with a new one, and answers under way end with the old one."
            )
        if shared is not None and shared.is_for_all:
            self.fields["is_for_all"].help_text = _(
                "If you clear it, all workspaces that have it keep it, and later ones do not get it."
            )
        if not may_skip_test:
            del self.fields["untested_key"]

    def draft(self) -> SharedDraft:
        """What was entered, once it is valid."""
        values = {name: self.cleaned_data[name] for name in (*_OF_ROW, "api_key")}
        return SharedDraft(**values, chosen_models=_lines(self.cleaned_data["chosen_models"]))


class OwnModels(models.TextChoices):
    """Which models one workspace may use."""

    FOLLOWS = "", _("Those that all workspaces may use")
    ALL = "all", _("All models")
    CHOSEN = "chosen", _("Chosen models")


class PartForm(_MayTakeAway):
    """What one workspace may have of a shared provider."""

    own_models = forms.ChoiceField(
        label=_("Models that this workspace may use"),
        required=False,
        choices=OwnModels.choices,
        widget=forms.RadioSelect,
    )
    chosen_models = _names_field(
        _(
            "One name in each line, as the provider spells it. If the workspace's default model is not among them, its"
            " admins choose another one."
        )
    )
    most_at_once = _requests_at_once(
        _(
            "Of this workspace. Further ones wait their turn for up to a minute. Leave empty for no limit of its own."
        )
    )
    most_a_minute = _requests_a_minute(_("Of this workspace. Leave empty for no limit of its own."))
    most_cost_a_month = cost_field(
        _("Cost a month"),
        _(
            "In US dollars, by the provider's list prices that Trellis knows. What the workspace enters as prices changes"
            " nothing here. Models without a list price count for tokens only. Leave empty for no limit."
        ),
    )
    most_tokens_a_month = token_field(
        _("Tokens a month"),
        _("Tokens that models read and write together. Leave empty for no limit."),
    )

    def __init__(self, *args: Any, row: ModelProvider, **options: Any) -> None:
        names = row.offered_models if row.has_own_offer else None
        own = OwnModels.FOLLOWS
        if row.has_own_offer:
            own = OwnModels.ALL if names is None else OwnModels.CHOSEN
        options["initial"] = {
            "own_models": own.value,
            "chosen_models": "\n".join(names or ()),
            "most_at_once": row.most_at_once,
            "most_a_minute": row.most_a_minute,
            "most_cost_a_month": typed_cost(row.most_cost_a_month),
            "most_tokens_a_month": row.most_tokens_a_month,
        }
        super().__init__(*args, **options)

    def draft(self) -> PartDraft:
        """What was entered, once it is valid."""
        own, given = self.cleaned_data["own_models"], self.cleaned_data
        chosen = _lines(given["chosen_models"]) if own == OwnModels.CHOSEN else None
        return PartDraft(
            has_own_offer=own != OwnModels.FOLLOWS,
            offered_models=chosen,
            most_at_once=given["most_at_once"],
            most_a_minute=given["most_a_minute"],
            most_cost_a_month=given["most_cost_a_month"],
            most_tokens_a_month=given["most_tokens_a_month"],
        )
