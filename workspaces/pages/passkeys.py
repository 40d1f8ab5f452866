"""Passkeys: signing in by the lock of a phone or computer, or with a security key. allauth speaks WebAuthn, in our words.

Source: https://www.w3.org/TR/webauthn-3/
"""

from __future__ import annotations

from typing import Any, Final

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm, LoginWebAuthnForm
from allauth.mfa.webauthn.views import AddWebAuthnView
from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from workspaces.pages.accounts import ONLY_PROVIDER
from workspaces.people.identity_provider import provider_instead_of_password
from workspaces.words.names import seen_name

_BROKEN: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""What the library meets in an answer that no device gave."""
_NOT_TAKEN: Final = _("This passkey was not accepted. Try again, or sign in another way.")


class AddPasskeyView(AddWebAuthnView):
    """Leads back to the list of passkeys, by way of recovery codes that are new."""

    def get_success_url(self) -> str:
        is_first = self.did_generate_recovery_codes
        return reverse("mfa_view_recovery_codes" if is_first else "mfa_list_webauthn")


class PasskeyForm(AddWebAuthnForm):
    """A new passkey, and what its owner calls it. Its device asks for their finger, face or PIN each time."""

    name = forms.CharField(
        label=_("Name"),
        max_length=60,
        required=False,
        help_text=_("Where it is, such as “My phone”."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        del self.fields["passwordless"]
        self.initial["name"] = ""

    def clean_name(self) -> str:
        return seen_name(self.cleaned_data["name"]) or str(_("Passkey"))

    def clean(self) -> dict[str, Any]:
        # Otherwise one would be taken that anybody can use who finds its device.
        self.cleaned_data["passwordless"] = True
        try:
            return dict(super().clean())
        except (ValidationError, *_BROKEN):
            raise ValidationError(_NOT_TAKEN) from None


class PasskeySignInForm(LoginWebAuthnForm):
    """Somebody signs in by a passkey alone."""

    def clean_credential(self) -> Authenticator:
        authenticator = _taken(super().clean_credential)
        provider = provider_instead_of_password(authenticator.user)
        if provider is not None:
            raise ValidationError(ONLY_PROVIDER % {"name": provider.name})
        return authenticator


class PasskeyStepForm(AuthenticateWebAuthnForm):
    """A passkey as the second step, after the password."""

    def clean_credential(self) -> Authenticator:
        return _taken(super().clean_credential)


def _taken(check: Any) -> Authenticator:
    try:
        return check()
    except ValidationError as error:
        if getattr(error, "code", "") == "too_many_login_attempts":
            raise
        raise ValidationError(_NOT_TAKEN) from None
    except _BROKEN:
        raise ValidationError(_NOT_TAKEN) from None
