"""Our rules for allauth's two-step verification, and its forms in our words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

from allauth.account.internal.decorators import login_stage_required
from allauth.account.internal.stagekit import clear_login, get_pending_stage
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _

from workspaces.delivery.mails import public_url
from workspaces.models import User
from workspaces.people.identity_provider import provider_instead_of_password
from workspaces.people.two_step import keep_secret, read_secret
from workspaces.secrets import SecretUnreadable, seal, unseal


class TwoStepAdapter(DefaultMFAAdapter):
    """Secrets are sealed in rows of their own, and belong to whoever signs in or has signed in."""

    error_messages: ClassVar = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": _(
            "This code is not right. Codes of the app change every 30 seconds, and each code works once."
        ),
        "cannot_generate_recovery_codes": _(
            "Turn on two-step verification first. Recovery codes belong to it."
        ),
    }

    def get_totp_issuer(self) -> str:
        return f"Trellis ({urlsplit(public_url('/')).hostname})"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        # The name is what the device shows.
        return {**super().get_public_key_credential_rp_entity(), "name": "Trellis"}

    def encrypt(self, text: str) -> str:
        return str(keep_secret(user=_person(), plain=text))

    def decrypt(self, encrypted_text: str) -> str:
        return read_secret(user_id=_person().pk, kept=encrypted_text)


def _person() -> User:
    """Who is signed in, or who has given their password and is asked for the code."""
    request = context.request
    stage = get_pending_stage(request)
    user = stage.login.user if stage is not None else request.user
    assert isinstance(user, User)
    return user


@method_decorator(
    login_stage_required(stage=AuthenticateStage.key, redirect_urlname="account_login"),
    name="dispatch",
)
class SecondStepView(AuthenticateView):
    """The second step of a sign-in that still holds: its step or the password may have ended while somebody waits here."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        login = request._login_stage.login  # type: ignore[attr-defined]  # the decorator's
        is_single_sign_on = "sociallogin" in (login.signal_kwargs or {})
        is_let_in = is_single_sign_on or provider_instead_of_password(login.user) is None
        steps = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]
        if not is_let_in or not is_mfa_enabled(login.user, steps):
            clear_login(request)
            return redirect("account_login")
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response


class _CodeField(forms.BaseForm):
    """The box of a code: phones show their keys for digits, and offer what came by message."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["code"]
        field.label = _("Code")
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs.update(inputmode="numeric", autofocus=True, maxlength=20)


class FirstCodeForm(_CodeField, ActivateTOTPForm):
    """The first code of an app proves that it has the key. Until then the session keeps it, sealed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        session = context.request.session
        place = f"session:{options['user'].pk}:{SECRET_SESSION_KEY}"
        sealed = session.pop(SECRET_SESSION_KEY, None)
        # Without the encryption key that it was sealed with, the page begins anew.
        with suppress(SecretUnreadable):
            if sealed:
                session[SECRET_SESSION_KEY] = unseal(sealed, place=place)
        super().__init__(*args, **options)
        session[SECRET_SESSION_KEY] = seal(self.secret, place=place)

    def key_in_groups(self) -> str:
        """The key, so that it can be typed."""
        return " ".join(self.secret[i : i + 4] for i in range(0, len(self.secret), 4))


class CodeForm(_CodeField, AuthenticateForm):
    """A code of the app, or a recovery code."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not self.has_app():
            self.fields["code"].label = _("Recovery code")

    def has_app(self) -> bool:
        """Whether there is an app to look at, and not a passkey alone."""
        mine = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.TOTP)
        return bool(mine.exists())
