"""Our rules for django-allauth: accounts come into being by invitation only."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import reverse

from workspaces.errors import NotFound
from workspaces.models import Invitation
from workspaces.services import find_invitation

SESSION_KEY = "invitation_token"


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up opens only to somebody who came by an open invitation, under its address."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return invitation_of(request) is not None

    def clean_email(self, email: str) -> str:
        email = str(super().clean_email(email)).lower()
        request = self.request
        invitation = invitation_of(request) if request and _is_signup(request) else None
        if invitation is not None and invitation.email.lower() != email:
            from django.core.exceptions import ValidationError

            raise ValidationError("Please use the address the invitation was sent to.")
        return email

    def save_user(self, request: HttpRequest, user: Any, form: Any, commit: bool = True) -> Any:
        user.name = form.cleaned_data.get("name", "").strip()
        return super().save_user(request, user, form, commit)

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        # The link came to that mailbox, so having it proves the address.
        invitation = invitation_of(request)
        return invitation is not None and invitation.email.lower() == email.lower()

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        token = request.session.get(SESSION_KEY)
        return reverse("workspaces:invitation", args=[token]) if token else "/"


def invitation_of(request: HttpRequest) -> Invitation | None:
    """The open invitation that this visitor came with."""
    token = request.session.get(SESSION_KEY)
    if not token:
        return None
    try:
        return find_invitation(token)
    except NotFound:
        return None


def _is_signup(request: HttpRequest) -> bool:
    return request.path == reverse("account_signup")
