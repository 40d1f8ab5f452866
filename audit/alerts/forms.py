"""The form of an alert rule."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audit.alerts.filtering import as_typed
from audit.alerts.services import AlertRuleDraft
from audit.models import AlertRule
from audit.models.alerts import MOST_WINDOW_MINUTES
from audit.reviews.stored_filters import LONGEST
from workspaces.pages.numbers import WholeNumberField
from workspaces.pages.seen_values import NoticesOthers

_COMPLETED: Final = {
    "autocomplete": "off",
    "autocapitalize": "none",
    "spellcheck": "false",
    "data-filter-text": "known-filters",
}


class RuleForm(NoticesOthers, forms.Form):
    """Settings of one rule."""

    name = forms.CharField(label=_("Name"), max_length=100)
    condition = forms.ChoiceField(label=_("Watch for"), choices=AlertRule.Condition.choices)
    query = forms.CharField(
        label=_("Filter"),
        required=False,
        max_length=LONGEST,
        widget=forms.TextInput(attrs=_COMPLETED),
        help_text=_(
            "As you type it in the log, for example tool:mail.send person:ada. The rule sets the time."
        ),
    )
    threshold = WholeNumberField(
        label=_("Threshold"),
        min_value=1,
        max_value=100_000,
        initial=5,
        help_text=_("For an error rate or a spending limit: in per cent."),
    )
    window_minutes = forms.IntegerField(
        label=_("Time window (minutes)"),
        min_value=1,
        max_value=MOST_WINDOW_MINUTES,
        initial=15,
        help_text=_("Waiting approvals count after this time."),
    )
    least_calls = WholeNumberField(
        label=_("Minimum number of calls for an error rate"),
        min_value=1,
        max_value=100_000,
        initial=10,
    )
    tells_bell = forms.BooleanField(
        label=_("Notify everybody who can see the log"), required=False, initial=True
    )
    emails = forms.CharField(
        label=_("E-mail to"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("One address per line."),
    )
    webhook_url = forms.CharField(
        label=_("Webhook"),
        required=False,
        max_length=2048,
        help_text=_("Signed like all webhooks."),
    )
    remind_hours = forms.IntegerField(
        label=_("Remind every (hours)"),
        min_value=0,
        max_value=24 * 30,
        initial=24,
        help_text=_("While the alert is active. 0: never."),
    )

    def __init__(self, *args: Any, rule: AlertRule | None = None, **kwargs: Any) -> None:
        if rule is not None:
            kwargs["initial"] = {name: getattr(rule, name) for name in self.base_fields} | {
                "emails": "\n".join(rule.emails),
                "query": as_typed(rule, now=timezone.now()),
            }
        kwargs["auto_id"] = "id_rule_%s"
        super().__init__(*args, **kwargs)

    def clean_emails(self) -> list[str]:
        """One address per line."""
        return str(self.cleaned_data["emails"]).replace(",", " ").split()

    def draft(self) -> AlertRuleDraft:
        """What was entered, once it is valid."""
        return AlertRuleDraft(**self.cleaned_data)
