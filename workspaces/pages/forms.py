"""Forms of the account pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from allauth.account.adapter import get_adapter
from allauth.account.forms import (
    AddEmailForm,
    ChangePasswordForm,
    LoginForm,
    ReauthenticateForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SetPasswordForm,
    SignupForm,
)
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from django import forms
from django.conf import settings
from django.db.models import TextChoices
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.models import ROLE_WORDS, Clock, DateFormat, NumberFormat, User
from workspaces.pages.address_fields import TakesAddresses
from workspaces.pages.secret_fields import AsksForSecretsAgain
from workspaces.people.email_addresses import is_address_of, is_taken
from workspaces.people.identity_provider import (
    IdentityProvider,
    identity_provider,
    provider_instead_of_password,
)
from workspaces.people.joining import MOST_DAYS, MOST_USES
from workspaces.people.joining import ROLES as JOIN_ROLES
from workspaces.people.public_mail import is_public_mail
from workspaces.people.tokens import owns_platform, scopes_for
from workspaces.words.formats import time_zones

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LIFETIMES = [
    ("7", _("7 days")),
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("1 year")),
]


def lifetime_end(days: str) -> datetime:
    """The moment that a chosen lifetime ends."""
    return timezone.now() + timedelta(days=int(days))


_AS_THE_BROWSER = _("As my browser says")


def _or_browser(choices: type[TextChoices]) -> list[tuple[str, Any]]:
    return [("", _AS_THE_BROWSER), *choices.choices]


class TokenForm(forms.Form):
    """What a person says when making an API token."""

    name = forms.CharField(label=_("Name"), max_length=100)
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"), widget=forms.CheckboxSelectMultiple, initial=["chat"]
    )
    days = forms.ChoiceField(choices=LIFETIMES, initial="90", label=_("Expires after"))

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        """Offer what the person may do themselves."""
        super().__init__(*args, **kwargs)
        cast(forms.MultipleChoiceField, self.fields["scopes"]).choices = scopes_for(actor)
        if owns_platform(actor):
            self.fields["scopes"].help_text = _(
                "A token for the whole installation reaches every workspace. It ends within 90 days, and stops when you are"
                " no longer a superuser. Changes of rights, programs and addresses take your browser."
            )

    def expires_at(self) -> datetime:
        """The moment that the chosen lifetime ends."""
        return lifetime_end(self.cleaned_data["days"])


class JoinLinkForm(forms.Form):
    """Whom a link lets in."""

    email_domain = forms.CharField(
        max_length=254,
        label=_("Mail domain"),
        help_text=_(
            "Only people who have confirmed an address at this domain can join, such as example.org."
        ),
    )
    lets_in_anybody = forms.BooleanField(
        required=False,
        label=_("Make the link all the same: anybody may join"),
        help_text=_("Until the link ends, or as many have joined as you say below."),
    )
    role = forms.ChoiceField(
        choices=[(role.value, ROLE_WORDS[role]) for role in JOIN_ROLES], label=_("They join as")
    )
    days = forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, initial=7, label=_("Works for (days)")
    )
    most_uses = forms.IntegerField(
        min_value=1, max_value=MOST_USES, initial=25, label=_("For so many people")
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not is_public_mail(self.data.get("email_domain", "")):
            del self.fields["lets_in_anybody"]


class ProfileForm(forms.Form):
    """What others call the person."""

    name = forms.CharField(
        max_length=150,
        required=False,
        label=_("Your name"),
        help_text=_("Others see it beside your address."),
    )


class FormatsForm(forms.Form):
    """How moments and numbers are written for the person."""

    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)
    date_format = forms.ChoiceField(
        label=_("Date"), required=False, widget=forms.RadioSelect, choices=_or_browser(DateFormat)
    )
    clock = forms.ChoiceField(
        label=_("Clock"), required=False, widget=forms.RadioSelect, choices=_or_browser(Clock)
    )
    number_format = forms.ChoiceField(
        label=_("Numbers"),
        required=False,
        widget=forms.RadioSelect,
        choices=_or_browser(NumberFormat),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer the time zones by their part of the world."""
        super().__init__(*args, **kwargs)
        parts: dict[str, list[tuple[str, str]]] = {}
        for name in time_zones():
            part, _slash, place = name.partition("/")
            label = (place or name).replace("_", " ")
            parts.setdefault(part if place else "", []).append((name, label))
        others = parts.pop("", [])
        groups: list[Any] = [("", _AS_THE_BROWSER), *parts.items(), (_("Others"), others)]
        cast(forms.ChoiceField, self.fields["time_zone"]).choices = groups


_NEW_PASSWORD: Final = {
    "oldpassword": _("Current password"),
    "password1": _("New password"),
    "password2": _("New password (again)"),
}
_LEAST_PASSWORD: Final = _("At least ten characters.")


class _NamesFields(forms.BaseForm):
    """Names and help of fields as elsewhere: in sentence case, short, and not once more within the fields."""

    NAMES: ClassVar[Mapping[str, StrOrPromise]] = _NEW_PASSWORD

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in self.NAMES.keys() & self.fields.keys():
            self.fields[name].label = self.NAMES[name]
            self.fields[name].widget.attrs.pop("placeholder", None)
        if "password1" in self.fields:
            # The other rules are for passwords that nobody should have, and are told where one breaks them.
            self.fields["password1"].help_text = _LEAST_PASSWORD


class _AnswersByMail(_NamesFields):
    """Forms after which a mail is sent."""

    def is_without_mail(self) -> bool:
        """Whether it is only written to a file, since no mail server is configured."""
        return settings.TRELLIS.email_host is None


class SetupForm(TakesAddresses, AsksForSecretsAgain, forms.Form):
    """Who owns the installation, and what the first workspace is called."""

    name = forms.CharField(max_length=150, required=False, label=_("Your name"))
    email = forms.EmailField(
        label=_("E-mail address"), widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_LEAST_PASSWORD,
    )
    workspace_name = forms.CharField(
        max_length=100,
        label=_("Name of the workspace"),
        help_text=_("Your team or company. People in a workspace share servers, buds and the log."),
    )

    def refuse(self, error: InvalidInput) -> None:
        """Show what the service refused: at the field, or above all of them."""
        places = {"password": "password", "name": "workspace_name", "slug": "workspace_name"}
        for name, texts in error.fields.items():
            self.add_error(places.get(name), texts)


class _OffersProvider(forms.BaseForm):
    """Forms of the way in, where an installation may have single sign-on."""

    def provider(self) -> IdentityProvider | None:
        """Who else says who somebody is."""
        return identity_provider()


class SignInForm(_OffersProvider, TakesAddresses, LoginForm):
    """Sign-in, with an address that may have been pasted."""

    def has_nobody(self) -> bool:
        """Whether nobody could sign in, since there is no account yet."""
        return not User.objects.exists()


class InvitedSignupForm(_OffersProvider, _NamesFields, TakesAddresses, SignupForm):
    """Sign-up by invitation also asks for a name."""

    NAMES: ClassVar = {
        "email": _("E-mail address"),
        "password1": _("Password"),
        "password2": _("Password (again)"),
    }

    name = forms.CharField(max_length=150, required=False, label=_("Your name"))
    field_order = ["email", "name", "password1", "password2"]

    def validate_unique_email(self, value: str) -> str:
        self.account_already_exists = False
        if is_taken(value):
            raise forms.ValidationError(
                _("This address has an account already. Sign in to accept the invitation.")
            )
        return value

    def save(self, request: HttpRequest) -> Any:
        # What others have claimed without answering the mail does not stand in the way of who was invited.
        email = self.cleaned_data["email"]
        EmailAddress.objects.filter(email=email, verified=False).delete()
        return super().save(request)


class ChangeAddressForm(_AnswersByMail, TakesAddresses, AddEmailForm):
    """Another address for the account: noted, until its mail is answered."""

    NAMES: ClassVar = {"email": _("New e-mail address")}

    def clean_email(self) -> str:
        provider = provider_instead_of_password(self.user)
        if provider is not None:
            raise forms.ValidationError(
                _("You sign in with %(name)s, so your address is the one that you have there.")
                % {"name": provider.name}
            )
        email = get_adapter().clean_email(self.cleaned_data["email"].lower())
        if is_address_of(self.user, email):
            raise forms.ValidationError(_("This is your address already."))
        return str(email)

    def save(self, request: HttpRequest) -> EmailAddress:
        mine = EmailAddress.objects.filter(user=self.user)
        email = self.cleaned_data["email"]
        mine.filter(primary=False, verified=False).exclude(email=email).delete()
        row, _ = mine.get_or_create(user=self.user, email=email)
        send_verification_email_to_address(request, row)
        return row


class NewPasswordForm(_NamesFields, ChangePasswordForm):
    """Another password, from somebody who knows the one before."""


class FirstPasswordForm(_NamesFields, SetPasswordForm):
    """A password for somebody who has none, as they sign in with an identity provider."""


class PasswordAgainForm(_NamesFields, ReauthenticateForm):
    """The password once more, from somebody who is signed in."""

    NAMES: ClassVar = {"password": _("Password")}


class ForgottenPasswordForm(_NamesFields, ResetPasswordKeyForm):
    """Another password, from somebody who opened the link of a mail."""


class ResetForm(_AnswersByMail, TakesAddresses, ResetPasswordForm):
    """A link for a new password goes only to an address that counts."""

    NAMES: ClassVar = {"email": _("E-mail address")}
    users: list[User]

    def clean_email(self) -> str:
        email = str(super().clean_email())
        self.users = [user for user in self.users if is_address_of(user, email)]
        return email
