"""How Trellis proves to a server who it is, and with whose account."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.secrets import EncryptedJSONField


class AuthType(models.TextChoices):
    NONE = "none", _("None")
    BEARER = "bearer", _("Bearer token")
    API_KEY = "api_key", _("API key in a header")
    BASIC = "basic", _("User name and password")
    OAUTH = "oauth", _("Sign-in (OAuth)")
    OAUTH_CLIENT = "oauth_client", _("OAuth without a person")


OAUTH_TYPES = frozenset({AuthType.OAUTH, AuthType.OAUTH_CLIENT})
"""Where tokens come from an issuer, and are no setting."""


class AccountUse(models.TextChoices):
    """Whose account at the server calls are made with, where people sign in."""

    USER = "user", _("Each person signs in")
    WORKSPACE = "workspace", _("One account for everybody")


class ServerCredentials(models.Model):
    """The part of a server's row with its secrets, and how people sign in."""

    headers = EncryptedJSONField()
    env = EncryptedJSONField(_("environment"))
    auth_type = models.CharField(
        _("authentication"), max_length=20, choices=AuthType.choices, default=AuthType.NONE
    )
    auth_config = EncryptedJSONField(_("credentials"))
    account_use = models.CharField(
        _("accounts"), max_length=10, choices=AccountUse.choices, default=AccountUse.USER
    )
    """Where people sign in: whether each does, or an administrator once for all."""
    oauth_scope = models.CharField(
        _("scopes"),
        max_length=1000,
        blank=True,
        help_text=_(
            "What is asked for when somebody signs in; empty: what the server says it needs."
        ),
    )

    class Meta:
        abstract = True
