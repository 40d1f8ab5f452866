"""Other MCP clients that people signed in to a workspace with: who they are, what they were allowed, and their tokens.

Source: MCP specification, "Authorization"; RFC 6749, 7591, 7636, 8707; OAuth Client ID Metadata Document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.scoping import WorkspaceManager, WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User

LONGEST_CLIENT_ID: Final = 500
LONGEST_CLIENT_NAME: Final = 100
LONGEST_REDIRECT: Final = 500
HASH_LENGTH: Final = 64


class KnownVia(models.TextChoices):
    """How a client made itself known."""

    DOCUMENT = "document", _("Client ID metadata document")
    REGISTRATION = "registration", _("Registered by itself")


class KnownClient(models.Model):
    """A program that people may sign in with, as it says of itself. It belongs to no workspace and holds no secret.

    The same program serves people of many workspaces, and none of them may learn of the others: so the database shows
    these rows to the platform alone, and a sign-in keeps the words that its person has read.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    client_id = models.CharField(max_length=LONGEST_CLIENT_ID, unique=True)
    via = models.CharField(max_length=12, choices=KnownVia.choices)
    name = models.CharField(max_length=LONGEST_CLIENT_NAME)
    redirect_uris = models.JSONField(default=list)
    """Exactly as it gave them; compared character by character."""
    read_at = models.DateTimeField()
    """When its document was read, or when it registered."""
    used_at = models.DateTimeField(null=True)
    """When a person last allowed it something; none: nobody has."""

    class Meta:
        verbose_name = _("MCP client")
        indexes = [models.Index(fields=["used_at", "read_at"], name="known_client_age")]

    def __str__(self) -> str:
        return self.name


class ClientSignInQuerySet(WorkspaceQuerySet["ClientSignIn"]):
    """Sign-ins of clients; a person's own are nobody else's to see."""

    def visible_to(self, user: User) -> Self:
        """This person's own."""
        return super().visible_to(user).filter(user=user)

    def under_way(self) -> Self:
        """Those whose client has come for its tokens."""
        return self.filter(begun_at__isnull=False)


class ClientSignIn(WorkspaceModel):
    """What one person allowed one client in one workspace. It ends by being deleted, with its tokens."""

    client = models.ForeignKey(KnownClient, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    client_name = models.CharField(max_length=LONGEST_CLIENT_NAME)
    """As the person has read it."""
    redirect_uri = models.CharField(max_length=LONGEST_REDIRECT)
    redirect_host = models.CharField(max_length=255)
    """Where the code went, as the person has read it."""
    scopes = models.JSONField(default=list)
    code_challenge = models.CharField(max_length=43)
    resource = models.CharField(max_length=LONGEST_REDIRECT)
    """The endpoint's address as the client named it."""
    proof = models.CharField(max_length=HASH_LENGTH)
    """What the person was signed in with: another password, or signing out everywhere, makes it another one."""
    begun_at = models.DateTimeField(null=True)
    """When the client came for its tokens; none: not yet."""
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    objects = models.Manager.from_queryset(ClientSignInQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("sign-in of an MCP client")
        indexes = [models.Index(fields=["expires_at"], name="client_sign_in_expiry")]

    def __str__(self) -> str:
        return self.client_name


class TokenKind(models.TextChoices):
    """What a token of a client is good for."""

    CODE = "code", _("Authorization code")
    ACCESS = "access", _("Access token")
    REFRESH = "refresh", _("Refresh token")


class ClientToken(WorkspaceModel):
    """The hash of a code or token that a client was given."""

    sign_in = models.ForeignKey(ClientSignIn, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=7, choices=TokenKind.choices)
    token_hash = models.CharField(max_length=HASH_LENGTH, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    """Codes and refresh tokens serve once. A used one is kept for a while, so that its second use is noticed."""

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("token of an MCP client")
        indexes = [models.Index(fields=["expires_at"], name="client_token_expiry")]

    def __str__(self) -> str:
        return f"{self.kind} token"
