"""Routes of sign-in and of accounts: those of django-allauth that Trellis offers, and no more.

Its own list grows with its releases, by pages that nobody here has looked at.
"""

from __future__ import annotations

from allauth.account import views
from allauth.mfa.base import views as two_step
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as authenticator_app
from allauth.mfa.webauthn import views as passkeys
from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.utils.module_loading import import_string

from workspaces.pages.accounts import AddressView, InvitedSignupView
from workspaces.pages.passkeys import AddPasskeyView
from workspaces.pages.two_step import SecondStepView


def to_provider(request: HttpRequest) -> HttpResponse:
    """Begin single sign-on. What talks with a provider is loaded by the first click: most installations have none."""
    view: HttpResponse = import_string("workspaces.pages.single_sign_on.start")(request)
    return view


def from_provider(request: HttpRequest) -> HttpResponse:
    """End single sign-on."""
    view: HttpResponse = import_string("workspaces.pages.single_sign_on.end")(request)
    return view


urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", InvitedSignupView.as_view(), name="account_signup"),
    path("email/", AddressView.as_view(), name="account_email"),
    path("confirm-email/", views.email_verification_sent, name="account_email_verification_sent"),
    re_path(
        r"^confirm-email/(?P<key>[-:\w]+)/$", views.confirm_email, name="account_confirm_email"
    ),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("password/reset/", views.password_reset, name="account_reset_password"),
    path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("sso/", to_provider, name="sso"),
    path("sso/callback/", from_provider, name="sso_callback"),
    path("2fa/", two_step.index, name="mfa_index"),
    path("2fa/authenticate/", SecondStepView.as_view(), name="mfa_authenticate"),
    path("passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("2fa/passkeys/", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path("2fa/passkeys/add/", AddPasskeyView.as_view(), name="mfa_add_webauthn"),
    path("2fa/passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("2fa/app/activate/", authenticator_app.activate_totp, name="mfa_activate_totp"),
    path("2fa/app/deactivate/", authenticator_app.deactivate_totp, name="mfa_deactivate_totp"),
    path("2fa/recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path(
        "2fa/recovery-codes/generate/",
        recovery_codes.generate_recovery_codes,
        name="mfa_generate_recovery_codes",
    ),
    path(
        "2fa/recovery-codes/download/",
        recovery_codes.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
]
