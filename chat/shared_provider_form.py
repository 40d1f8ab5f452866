"""The form of a model provider that the platform's owner shares."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from chat.models import SharedProvider
from chat.services.providers import LONGEST_KEY
from chat.services.shared_providers import SharedDraft
from chat.suggesting_inputs import ModelInput, SharedAddressInput
from workspaces.seen_values import NoticesOthers

_OF_ROW: Final = (
    *("name", "base_url", "default_model", "is_for_all", "most_at_once", "most_a_minute"),
)


class SharedProviderForm(NoticesOthers, forms.Form):
    """The key goes in and never comes out."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Workspaces see it, such as “OpenAI”.")
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        widget=SharedAddressInput(attrs={"spellcheck": "false"}),
        help_text=_(
            "Type a provider's name, and choose its address. Any other one goes up to and including /v1, for most"
            " providers. It may be on a private network. Workspaces never see it."
        ),
    )
    default_model = forms.CharField(
        label=_("Default model"),
        max_length=200,
        widget=ModelInput(attrs={"spellcheck": "false"}),
        help_text=_(
            "By the provider's own name for it. Workspaces may use the provider's other models, too."
        ),
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
    most_at_once = forms.IntegerField(
        label=_("Requests at once"),
        required=False,
        min_value=1,
        max_value=1000,
        help_text=_(
            "Of all workspaces together. Further ones wait their turn for up to a minute. Leave empty for no limit."
        ),
    )
    most_a_minute = forms.IntegerField(
        label=_("Requests a minute"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=_("Of all workspaces together. Leave empty for no limit."),
    )

    def __init__(
        self,
        *args: Any,
        shared: SharedProvider | None = None,
        may_skip_test: bool = False,
        **options: Any,
    ) -> None:
        if shared is not None:
            options["initial"] = {name: getattr(shared, name) for name in _OF_ROW}
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
        return SharedDraft(**values)
