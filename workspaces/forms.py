"""Forms of the account pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from allauth.account.forms import SignupForm
from django import forms
from django.utils import timezone

from workspaces.tokens import SCOPES

LIFETIMES = [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "1 year")]


class TokenForm(forms.Form):
    """What a person says when making an API token."""

    name = forms.CharField(max_length=100)
    scopes = forms.MultipleChoiceField(
        choices=list(SCOPES.items()), widget=forms.CheckboxSelectMultiple
    )
    days = forms.ChoiceField(choices=LIFETIMES, initial="90", label="Expires after")

    def expires_at(self) -> Any:
        """The moment that the chosen lifetime ends."""
        return timezone.now() + timedelta(days=int(self.cleaned_data["days"]))


class InvitedSignupForm(SignupForm):
    """Sign-up by invitation also asks for a name."""

    name = forms.CharField(max_length=150, required=False, label="Your name")
    field_order = ["email", "name", "password1", "password2"]
