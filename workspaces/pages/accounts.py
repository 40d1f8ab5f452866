"""Our rules for django-allauth: accounts come into being by invitation only, and an address counts once its mail was answered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.views import EmailView, SignupView
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from workspaces.actors import Actor, Source
from workspaces.database import after_commit
from workspaces.delivery.mails import compose, public_url
from workspaces.errors import NotFound
from workspaces.login_limits import forget_tries, remember_browser, take_a_try
from workspaces.middleware import actor_for, client_address
from workspaces.models import Invitation, JoinLink, User
from workspaces.people.email_addresses import is_address_of
from workspaces.people.identity_provider import (
    identity_provider,
    provider_instead_of_password,
)
from workspaces.people.joining import find_join_link, is_for
from workspaces.people.services import accept_invitation, find_invitation
from workspaces.people.single_sign_on import join_with_all
from workspaces.words.formats import written_for
from workspaces.words.names import seen_name

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

SESSION_KEY = "invitation_token"
JOIN_KEY = "join_token"
ONLY_PROVIDER: Final = _(
    "You sign in with %(name)s, and in no other way. Choose “Continue with %(name)s”."
)
_TOO_MANY_TRIES: Final = _("Too many wrong tries. Try again in a few minutes.")


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up opens only to somebody who came by an open invitation, under its address, or by a join link."""

    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        # Of passwords and of codes.
        "too_many_login_attempts": _TOO_MANY_TRIES,
        "rate_limited": _TOO_MANY_TRIES,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitation_of(request) is not None or join_link_of(request) is not None

    def clean_email(self, email: str) -> str:
        email = str(super().clean_email(email)).lower()
        request = self.request
        invitation = invitation_of(request) if request and _is_signup(request) else None
        if invitation is not None and invitation.email.lower() != email:
            raise ValidationError(_("Please use the address the invitation was sent to."))
        provider = identity_provider() if request and _is_signup(request) else None
        if provider is not None and provider.is_required and provider.speaks_for(email):
            raise ValidationError(ONLY_PROVIDER % {"name": provider.name})
        link = join_link_of(request) if request and _is_signup(request) else None
        if invitation is None and link is not None and not is_for(link, email):
            message = _("This link is for addresses at %(domain)s.")
            raise ValidationError(message % {"domain": link.email_domain})
        return email

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        user.name = seen_name(form.cleaned_data.get("name", ""))
        return super().save_user(request, user, form, commit)

    def set_password(self, user: Any, password: str) -> None:
        # All else of the row is as old as the request: somebody may have switched the account off since.
        user.set_password(password)
        user.save(update_fields=["password", "updated_at"])

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        # The link came to that mailbox, so having it proves the address; unless the inviter saw it.
        invitation = invitation_of(request)
        return (
            invitation is not None
            and not invitation.is_link_shown
            and invitation.email.lower() == email.lower()
        )

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        self._login_failed_rl_usage = take_a_try(request, str(credentials.get("email", "")))
        if self._login_failed_rl_usage is None:
            raise ValidationError(
                _("Too many wrong passwords. Try again in a few minutes, or reset your password.")
            )

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        forget_tries(request, str(credentials.get("email", "")))

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        refusal: HttpResponse | None = super().pre_login(request, user, **kwargs)
        if refusal is None and kwargs["signup"]:
            has_joined = _join_as_invited(request, user)
            if not has_joined and "sociallogin" in (kwargs["signal_kwargs"] or {}):
                join_with_all(user=user, actor=actor_at_door(request, user))
        return refusal

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember_browser(request, response, user)
        return response

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is not None and not is_address_of(user, str(credentials.get("email", ""))):
            return None
        if user is not None and (provider := provider_instead_of_password(user)) is not None:
            raise ValidationError(ONLY_PROVIDER % {"name": provider.name})
        return user

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        try:
            with transaction.atomic():
                return bool(super().confirm_email(request, email_address))
        except IntegrityError:  # an account that nobody has confirmed signs in with it
            words = {"email": email_address.email}
            template = "account/messages/email_confirmation_failed.txt"
            self.add_message(request, messages.ERROR, template, words)
            return False

    def get_reset_password_from_key_url(self, key: str) -> str:
        return self._public(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        return self._public(super().get_email_confirmation_url(request, emailconfirmation))

    @staticmethod
    def _public(url: str) -> str:
        """The same page under the public address: whoever asks for a mail chooses the request's host."""
        parts = urlsplit(url)
        return public_url(parts._replace(scheme="", netloc="").geturl())

    def render_mail(
        self, template_prefix: str, email: Any, context: Any, headers: Any = None
    ) -> EmailMultiAlternatives:
        all_values = {**context, "home": public_url("/")}
        with written_for(context.get("reader")):
            plain = super().render_mail(template_prefix, email, all_values, headers)
        return compose(
            subject=plain.subject,
            text=str(plain.body),
            to=plain.to,
            headers={**plain.extra_headers, "Auto-Submitted": "auto-generated"},
        )

    def send_notification_mail(
        self,
        template_prefix: str,
        user: Any,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        all_values = {**(context or {}), "reader": user}
        super().send_notification_mail(template_prefix, user, all_values, email)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        # Outside of any transaction; a mail server that is away looks the same for taken and free addresses.
        after_commit(super().send_mail, template_prefix, email, context)

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        token = request.session.get(SESSION_KEY)
        if token:
            return reverse("workspaces:invitation", args=[token])
        return reverse("workspaces:join") if request.session.get(JOIN_KEY) else "/"


class AddressView(EmailView):
    """The page of one's address: another one takes its place by answering its mail, and in no other way."""

    def _action_primary(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        return None


class InvitedSignupView(SignupView):
    """The form of a new account, with the address that was invited: no other one would be taken."""

    def closed(self) -> HttpResponse:
        """Have the page of what they came with say that it has ended."""
        if SESSION_KEY in self.request.session:
            return redirect("workspaces:accept_invitation")
        if JOIN_KEY in self.request.session:
            return redirect("workspaces:join")
        closed: HttpResponse = super().closed()
        return closed

    def get_initial(self) -> dict[str, Any]:
        invitation = invitation_of(self.request)
        invited = {"email": invitation.email} if invitation else {}
        return {**super().get_initial(), **invited}


def invitation_of(request: HttpRequest) -> Invitation | None:
    """The open invitation that this visitor came with."""
    token = request.session.get(SESSION_KEY)
    if not token:
        return None
    try:
        return find_invitation(token)
    except NotFound:
        return None


def _join_as_invited(request: HttpRequest, user: User) -> bool:
    """Join by the invitation that a new account came with, so that its first sign-in is in the workspace's log.

    Returns:
        Whether they joined: the invitation may have ended since the form was sent, which its page says, or be for another
        address than the one with which they came by single sign-on.
    """
    invitation = invitation_of(request)
    if invitation is None or invitation.email.lower() != user.email:
        return False
    with suppress(NotFound):  # it ended just now
        actor = actor_at_door(request, user)
        accept_invitation(token=request.session[SESSION_KEY], user=user, actor=actor)
        words = {"name": invitation.workspace.name}
        messages.success(request, _("Welcome to %(name)s.") % words)
        return True
    return False


def actor_at_door(request: HttpRequest, user: User) -> Actor:
    """Somebody who is about to be signed in."""
    return actor_for(
        user,
        None,
        source=Source.WEB,
        ip_address=client_address(request),
        request_id=cast("WorkspaceRequest", request).request_id,
    )


def join_link_of(request: HttpRequest) -> JoinLink | None:
    """The open join link that this visitor came with."""
    token = request.session.get(JOIN_KEY)
    if not token:
        return None
    try:
        return find_join_link(token)
    except NotFound:
        return None


def _is_signup(request: HttpRequest) -> bool:
    return request.path == reverse("account_signup")
