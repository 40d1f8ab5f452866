"""The form of an alert rule."""

from __future__ import annotations

from typing import Any

from django import forms

from audit.alerts.services import RuleDraft
from audit.models import AlertRule
from audit.models.alerts import MOST_WINDOW_MINUTES


class RuleForm(forms.Form):
    """Settings of one rule."""

    name = forms.CharField(max_length=100)
    condition = forms.ChoiceField(label="Watch for", choices=AlertRule.Condition.choices)
    threshold = forms.IntegerField(
        label="From how many on",
        min_value=1,
        max_value=100_000,
        initial=5,
        help_text="For an error rate: from how many per cent on.",
    )
    window_minutes = forms.IntegerField(
        label="Within how many minutes",
        min_value=1,
        max_value=MOST_WINDOW_MINUTES,
        initial=15,
        help_text="Approvals count once they have waited this long.",
    )
    least_calls = forms.IntegerField(
        label="Error rate of at least how many calls", min_value=1, max_value=100_000, initial=10
    )
    server_name = forms.CharField(
        label="Only of the server", required=False, max_length=200, help_text="By its name."
    )
    tool_name = forms.CharField(label="Only of the tool", required=False, max_length=256)
    tells_bell = forms.BooleanField(
        label="Tell in the bell of everybody who may see the log", required=False, initial=True
    )
    emails = forms.CharField(
        label="E-mail to",
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="One address a line.",
    )
    webhook_url = forms.CharField(
        label="Webhook", required=False, max_length=2048, help_text="Signed like all webhooks."
    )
    remind_hours = forms.IntegerField(
        label="Remind every how many hours",
        min_value=0,
        max_value=24 * 30,
        initial=24,
        help_text="While it lasts. 0: never.",
    )

    def __init__(self, *args: Any, rule: AlertRule | None = None, **kwargs: Any) -> None:
        if rule is not None:
            kwargs["initial"] = {name: getattr(rule, name) for name in self.base_fields} | {
                "emails": "\n".join(rule.emails)
            }
        kwargs["auto_id"] = "id_rule_%s"
        super().__init__(*args, **kwargs)

    def clean_emails(self) -> list[str]:
        """One address a line."""
        return str(self.cleaned_data["emails"]).replace(",", " ").split()

    def draft(self) -> RuleDraft:
        """What was entered, once it is valid."""
        return RuleDraft(**self.cleaned_data)
