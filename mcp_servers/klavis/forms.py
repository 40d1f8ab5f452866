"""Forms of the pages on the hosted MCP provider."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_servers.klavis.accounts import MAX_KEY_LENGTH, AccountDraft, platform_key
from mcp_servers.klavis.models import DEFAULT_BASE_URL, KlavisAccount, KlavisDialect
from mcp_servers.models.call_rules import EFFECT_CHOICES
from mcp_servers.pages.forms.common import KEPT_SECRET_HELP, SECRET_HELP
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.pages.secret_fields import AsksForSecretsAgain
from workspaces.pages.seen_values import NoticesOthers


class KlavisAccountForm(NoticesOthers, AsksForSecretsAgain, forms.Form):
    """The workspace's account."""

    base_url = forms.CharField(
        label=_("Base URL"),
        max_length=MAX_URL_LENGTH,
        initial=DEFAULT_BASE_URL,
        help_text=_(
            "A different address removes the stored key, and you have to install the services again."
        ),
    )
    api_key = forms.CharField(
        label=_("API key"),
        max_length=MAX_KEY_LENGTH,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=SECRET_HELP,
    )
    dialect = forms.ChoiceField(
        label=_("API"), choices=KlavisDialect.choices, initial=KlavisDialect.AUTO
    )
    is_active = forms.BooleanField(label=_("Switched on"), required=False, initial=True)

    def __init__(self, *args: Any, account: KlavisAccount | None = None, **kwargs: Any) -> None:
        if account is not None:
            kwargs.setdefault(
                "initial",
                {
                    "base_url": account.base_url,
                    "dialect": account.dialect,
                    "is_active": account.is_active,
                },
            )
        super().__init__(*args, **kwargs)
        if account is not None and account.api_key:
            self.fields["api_key"].help_text = KEPT_SECRET_HELP
        elif platform_key():
            self.fields["api_key"].help_text = _(
                "Leave this empty to use the key that the platform's owner has set."
            )

    def draft(self) -> AccountDraft:
        """What the form says."""
        values = self.cleaned_data
        return AccountDraft(
            base_url=values["base_url"],
            api_key=values["api_key"] or None,
            dialect=KlavisDialect(values["dialect"]),
            is_active=values["is_active"],
        )


class ActionRuleForm(forms.Form):
    """What is to happen when a tool runs an action by name."""

    action = forms.CharField(
        label=_("Action"), max_length=200, help_text=_("As the tool names it, such as send_email.")
    )
    service = forms.CharField(label=_("Service"), max_length=200, required=False)
    category = forms.CharField(label=_("Category"), max_length=200, required=False)
    effect = forms.ChoiceField(label=_("Effect"), choices=EFFECT_CHOICES)
