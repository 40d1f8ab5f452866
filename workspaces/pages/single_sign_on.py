"""The pages of single sign-on: to the provider, and back. allauth speaks OpenID Connect, and these are our rules for it.

Source: https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from allauth.account.internal.userkit import filter_users_by_email
from allauth.account.models import EmailAddress
from allauth.account.utils import get_next_redirect_url
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from allauth.core.internal.datakit import parse_bool_safely
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from workspaces.models import User
from workspaces.pages.accounts import actor_at_door, invitation_of, join_link_of
from workspaces.people.email_addresses import is_address_of, is_taken
from workspaces.people.identity_provider import (
    IdentityProvider,
    identity_provider,
)
from workspaces.people.joining import is_for
from workspaces.people.provider_requests import (
    ProviderFailed,
    ProviderSession,
    read_description,
    reading_odd_answers,
)
from workspaces.people.single_sign_on import (
    SIGN_IN,
    claim_account,
    joined_by_all,
)
from workspaces.words.names import seen_name

logger = logging.getLogger(__name__)


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    known = _known_or_404()
    if request.user.is_authenticated:
        return redirect(get_next_redirect_url(request) or "/")
    # Each one makes a session, and may ask the provider.
    limits = {"app": "allauth.account", "action": "sso", "limit_get": True}
    if (refusal := ratelimit.consume_or_429(request, **limits)) is not None:
        return cast(HttpResponse, refusal)
    try:
        way = SignsOn(request, app=_app(known)).redirect(
            request, process=AuthProcess.LOGIN, next_url=get_next_redirect_url(request)
        )
    except OAuth2Error as error:
        return _failed(request, known, error)
    return cast(HttpResponse, way)


@require_GET
def end(request: HttpRequest) -> HttpResponse:
    """Take what the provider says of whoever comes back, and sign them in."""
    known = _known_or_404()
    view = OAuth2CallbackView.adapter_view(_Exchange(request, known.issuer))
    try:
        return cast(HttpResponse, view(request))
    except IntegrityError:  # the same person comes for the first time in two windows at once
        return _again(request, known)


class SingleSignOnAdapter(DefaultSocialAccountAdapter):
    """Who may come in by the provider, and how Trellis talks with it."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: Any = None) -> SignsOn:
        return SignsOn(request, app=_app(_known_or_404()))

    def list_providers(self, request: HttpRequest) -> list[Any]:
        return []

    def get_requests_session(self) -> ProviderSession:
        return ProviderSession()

    def authenticate_by_email(self, sociallogin: SocialLogin) -> tuple[User, str] | None:
        """The account with the address that the provider vouches for, once nobody else can get into it.

        One that the provider knows as somebody else's stays theirs: addresses are given to others, too.
        """
        for address in sociallogin.email_addresses:
            email = address.email
            users = filter_users_by_email(email, prefer_verified=True, for_login=True)
            linked = SocialAccount.objects.filter(provider=sociallogin.account.provider)
            theirs = set(linked.filter(user__in=users).values_list("user", flat=True))
            mine = [
                user
                for user in users
                if address.verified and user.pk not in theirs and is_address_of(user, email)
            ]
            if mine:
                actor = actor_at_door(self.request, mine[0])
                return claim_account(user_id=mine[0].pk, actor=actor), email
        return None

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        # It would wait in the session for the second step, and nobody needs it.
        sociallogin.token = None
        known, email = _known_or_404(), _claimed(sociallogin)
        if not email:
            _refuse(request, known, "no_address", email)
        if not any(address.verified for address in sociallogin.email_addresses):
            reason = "unproven" if known.speaks_for(email) else "elsewhere"
            _refuse(request, known, reason, email)
        if not sociallogin.is_existing:
            if is_taken(email):
                _refuse(request, known, "taken", email)
            # What others have claimed without answering the mail does not stand in the way of whom it belongs to.
            EmailAddress.objects.filter(email=email, verified=False).delete()

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        email = _claimed(sociallogin)
        invitation, link = invitation_of(request), join_link_of(request)
        is_invited = invitation is not None and invitation.email.lower() == email
        is_let_in = is_invited or (link is not None and is_for(link, email))
        if not is_let_in and joined_by_all() is None:
            _refuse(request, _known_or_404(), "uninvited", email)
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        if is_taken(_claimed(sociallogin)):  # since the first look, in another window
            raise ImmediateHttpResponse(_again(request, _known_or_404()))
        return True

    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: Mapping[str, Any]
    ) -> User:
        user = cast(User, sociallogin.user)
        user.email = str(data.get("email") or "").lower()
        parts = (data.get("first_name"), data.get("last_name"))
        name = data.get("name") or " ".join(part for part in parts if isinstance(part, str))
        user.name = seen_name(name)[:150] if isinstance(name, str) else ""
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> NoReturn:
        is_cancelled = error == AuthError.CANCELLED
        page = _failed(request, _known_or_404(), exception, is_cancelled=is_cancelled)
        raise ImmediateHttpResponse(page)

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """Whoever signs in with the provider for the first time has just done so: no mail says it again."""


class _Client(OAuth2Client):
    """Asks at an address that may have a query of its own."""

    def get_redirect_url(self, authorization_url: str, scope: Any, extra_params: Any) -> str:
        url = str(super().get_redirect_url(authorization_url, scope, extra_params))
        if "?" not in authorization_url:
            return url
        return f"{authorization_url}&{url[len(authorization_url) + 1 :]}"


class _Exchange(OpenIDConnectOAuth2Adapter):
    """What is fetched from the provider: its description of itself, and the claims."""

    client_class = _Client

    @property
    def openid_config(self) -> dict[str, Any]:
        return read_description(str(self.provider_id))

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return request.build_absolute_uri(reverse("sso_callback"))

    def get_access_token_data(
        self,
        request: HttpRequest,
        app: SocialApp,
        client: Any,
        pkce_code_verifier: str | None = None,
    ) -> Any:
        """Redeem the code. Providers say which ways to prove oneself they know, and not which one this client has.

        Source: https://openid.net/specs/openid-connect-core-1_0.html#ClientAuthentication
        """
        named = self.openid_config.get("token_endpoint_auth_methods_supported")
        known = named if isinstance(named, list) else [_BASIC]
        client.basic_auth = bool(app.secret) and _BASIC in known
        try:
            return self._redeemed(request, app, client, pkce_code_verifier)
        except ProviderFailed:
            if not client.basic_auth or _POST not in known:
                raise
        client.basic_auth = False
        return self._redeemed(request, app, client, pkce_code_verifier)

    def _redeemed(self, request: HttpRequest, app: SocialApp, client: Any, verifier: Any) -> Any:
        with reading_odd_answers():
            return super().get_access_token_data(request, app, client, verifier)

    def parse_token(self, data: Mapping[str, Any]) -> SocialToken:
        """Read the access token, which serves once and at once."""
        if not isinstance(data["access_token"], str):
            raise ProviderFailed("The provider sent no access token.")
        return SocialToken(token=data["access_token"])

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any
    ) -> SocialLogin:
        """Read the ID token. What it does not say of the address is asked for, of the same person.

        Source: https://openid.net/specs/openid-connect-core-1_0.html#UserInfoResponse
        """
        id_token = kwargs["response"].get("id_token")
        if not isinstance(id_token, str):
            raise ProviderFailed("The provider sent no ID token.")
        with reading_odd_answers():
            claims = self._decode_id_token(app, id_token)
        _check_claims(claims, client_id=app.client_id)
        if "email" not in claims and "userinfo_endpoint" in self.openid_config:
            more = self._fetch_user_info(token.token)
            if more.get("sub") != claims["sub"]:
                raise ProviderFailed(
                    "The ID token and the answer about the person name two people."
                )
            claims = {**more, **claims}
        return self.get_provider().sociallogin_from_response(request, {"id_token": claims})


def _check_claims(claims: Mapping[str, Any], *, client_id: str) -> None:
    """Check what the library leaves open.

    Source: https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation
    """
    subject = claims.get("sub")
    most = SocialAccount._meta.get_field("uid").max_length or 0
    is_named = isinstance(subject, str) and subject.isascii() and subject.isprintable()
    if not is_named or not 0 < len(str(subject)) <= most:
        raise ProviderFailed("The ID token names nobody.")
    if not isinstance(claims.get("exp"), int | float):
        raise ProviderFailed("The ID token does not say until when it holds.")
    if claims.get("azp", client_id) != client_id:
        raise ProviderFailed("The ID token was made for another client.")


_BASIC, _POST = "client_secret_basic", "client_secret_post"


class SignsOn(OpenIDConnectProvider):
    """The provider of the settings, as allauth knows providers."""

    oauth2_adapter_class = _Exchange

    def get_callback_url(self) -> str:
        return reverse("sso_callback")

    def extract_extra_data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {}  # nothing is kept of somebody but who they are

    def extract_email_addresses(self, data: Mapping[str, Any]) -> list[EmailAddress]:
        """The address, which counts if it is at a domain of the provider, and the provider does not doubt it.

        Some providers say of no address whether it is proven, as they give all of them to people themselves.
        """
        claims = data["id_token"]
        written = claims.get("email")
        if not isinstance(written, str) or not written.strip():
            return []
        email = written.strip().lower()
        proven = parse_bool_safely(claims.get("email_verified", True))
        # Beyond ASCII, two addresses may become one in small letters.
        is_proven = bool(proven) and written.isascii() and _known_or_404().speaks_for(email)
        return [EmailAddress(email=email, verified=is_proven, primary=True)]


def _known_or_404() -> IdentityProvider:
    known = identity_provider()
    if known is None:
        raise Http404(_("Single sign-on is off here."))
    return known


def _app(known: IdentityProvider) -> SocialApp:
    """The settings, as allauth has them. Who somebody is, is kept under the issuer, so another one's people are others."""
    return SocialApp(
        provider=SignsOn.id,
        provider_id=known.issuer,
        name=known.name,
        client_id=settings.TRELLIS.sso_client_id,
        secret=settings.TRELLIS.sso_client_secret.get_secret_value(),
        settings={"server_url": known.issuer, "oauth_pkce_enabled": True},
    )


def _claimed(sociallogin: SocialLogin) -> str:
    addresses = sociallogin.email_addresses
    return str(addresses[0].email) if addresses else ""


def _refuse(request: HttpRequest, known: IdentityProvider, reason: str, email: str) -> NoReturn:
    """Say to somebody whom the provider knows why they do not get in, and note it in the log."""
    tried = {"email": email, "step": SIGN_IN}
    user_login_failed.send(sender=SingleSignOnAdapter, credentials=tried, request=request)
    words = {"reason": reason, "provider": known, "email": email}
    page = render(request, "socialaccount/refused.html", words, status=403)
    raise ImmediateHttpResponse(page)


def _again(request: HttpRequest, known: IdentityProvider) -> HttpResponse:
    words = {"reason": "expired", "provider": known}
    return render(request, "socialaccount/authentication_error.html", words, status=400)


def _failed(
    request: HttpRequest,
    known: IdentityProvider,
    error: Exception | None,
    *,
    is_cancelled: bool = False,
) -> HttpResponse:
    """Go back to the sign-in, or say why nobody came back from the provider."""
    if is_cancelled:
        return redirect("account_login")
    code = request.GET.get("error", "")
    if error is None and not code:
        return _again(request, known)
    why = str(error) if isinstance(error, ProviderFailed) else type(error).__name__
    logger.warning("sso_failed", extra={"why": why, "code": code[:60]})
    words = {"reason": "provider", "provider": known}
    return render(request, "socialaccount/authentication_error.html", words, status=502)
