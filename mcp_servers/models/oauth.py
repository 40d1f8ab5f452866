"""Signing in to servers: who we are at an issuer, what a person granted, and sign-ins under way.

Source: MCP specification, "Authorization"; RFC 6749, 7591, 7636, 8414, 8707, 9207, 9728.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.servers import McpServer
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.scoping import WorkspaceManager, WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedJSONField, EncryptedTextField

if TYPE_CHECKING:
    from workspaces.models import User


MAX_SCOPE_LENGTH = 4000
"""Of all scopes in one text."""


class ClientKind(models.TextChoices):
    """How we came to be known at an issuer, in the order in which that is tried."""

    REGISTERED = "registered", _("Entered by an administrator")
    DOCUMENT = "document", _("Client ID metadata document")
    DYNAMIC = "dynamic", _("Registered by itself")


class OAuthClient(WorkspaceModel):
    """Who this installation is at one issuer, for one server. What is stored here goes to that issuer and nowhere else."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=MAX_URL_LENGTH)
    """As the issuer's metadata spell it; compared character by character."""
    kind = models.CharField(max_length=10, choices=ClientKind.choices)
    client_id = models.CharField(max_length=MAX_URL_LENGTH)
    client_secret = EncryptedTextField()
    auth_method = models.CharField(max_length=30, blank=True)
    """How the client proves itself at the token endpoint: a name of RFC 7591, or empty for not at all."""
    expires_at = models.DateTimeField(null=True)
    """When the secret runs out."""
    forgotten_at = models.DateTimeField(null=True)
    """When the issuer last did not know the client that it had registered itself."""
    redirect_uris = models.JSONField(default=list)
    """Exactly those that the issuer knows: one for each address under which browsers reach this installation."""
    metadata = models.JSONField(default=dict)
    """What the issuer said of itself, RFC 8414: its endpoints and abilities."""
    resource = models.CharField(max_length=MAX_URL_LENGTH)
    """What tokens are asked for, RFC 8707."""

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("OAuth client")
        constraints = [
            models.UniqueConstraint(fields=["server", "issuer"], name="oauth_client_per_issuer"),
            models.CheckConstraint(condition=~Q(issuer=""), name="oauth_client_has_issuer"),
        ]

    def __str__(self) -> str:
        return f"client at {self.issuer}"


class OAuthGrantQuerySet(WorkspaceQuerySet["OAuthGrant"]):
    """Grants; a person's own are nobody else's to see."""

    def visible_to(self, user: User) -> Self:
        """This person's own, and those of the workspace's accounts."""
        return super().visible_to(user).filter(Q(user__isnull=True) | Q(user=user))

    def of(self, user_id: object) -> Self:
        """That of one person; None: the workspace's account."""
        return self.filter(user__isnull=True) if user_id is None else self.filter(user_id=user_id)


class OAuthGrant(WorkspaceModel):
    """What one person, or the workspace, was granted at a server: tokens, and what they are bound to."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="grants")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    """Whose account it is; none: the workspace's."""
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=MAX_URL_LENGTH)
    token_endpoint = models.CharField(max_length=MAX_URL_LENGTH)
    endpoint = models.CharField(max_length=MAX_URL_LENGTH)
    """The server's URL when it was granted; at another one it is void."""
    resource = models.CharField(max_length=MAX_URL_LENGTH)
    tokens = EncryptedJSONField()
    """access_token, and refresh_token if the issuer gave one."""
    account = models.CharField(max_length=254, blank=True)
    """Which account that is over there, as far as the issuer says."""
    scope = models.CharField(max_length=MAX_SCOPE_LENGTH, blank=True)
    wanted_scope = models.CharField(max_length=MAX_SCOPE_LENGTH, blank=True)
    """What the server asked for beyond that; the next sign-in asks for both."""
    granted_at = models.DateTimeField()
    refreshed_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    """Of the access token; none: the issuer did not say."""
    last_used_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    """When the server's tools were last listed for this account; none: not yet."""
    generation = models.PositiveIntegerField(default=1)
    """Counts the access tokens, so that whoever waited for a new one sees that it is there."""
    refreshing_until = models.DateTimeField(null=True)
    """Somebody is fetching a new token, in whatever process; nobody else does before that time."""
    lost_reason = models.CharField(max_length=300, blank=True)
    """Why it no longer serves, in plain words; empty as long as it does."""

    objects = models.Manager.from_queryset(OAuthGrantQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        verbose_name = _("connected account")
        constraints = [
            models.UniqueConstraint(
                fields=["server", "user"],
                condition=Q(user__isnull=False),
                name="oauth_grant_of_person",
            ),
            models.UniqueConstraint(
                fields=["server"], condition=Q(user__isnull=True), name="oauth_grant_of_workspace"
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="oauth_grant_expiry")]

    def __str__(self) -> str:
        return f"grant at {self.issuer}"

    @property
    def is_usable(self) -> bool:
        """It has tokens, and nothing was heard of their end."""
        return bool(self.tokens) and not self.lost_reason


class OAuthAttempt(WorkspaceModel):
    """A sign-in under way: begun in one request, ended by the issuer's redirect in another."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    client = models.ForeignKey(OAuthClient, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    """Who began it, and alone may end it."""
    for_workspace_account = models.BooleanField(default=False)
    state_hash = models.CharField(max_length=64, unique=True)
    session_hash = models.CharField(max_length=64)
    """The browser's session it was begun in."""
    verifier = EncryptedTextField()
    issuer = models.CharField(max_length=MAX_URL_LENGTH)
    token_endpoint = models.CharField(max_length=MAX_URL_LENGTH)
    endpoint = models.CharField(max_length=MAX_URL_LENGTH)
    redirect_uri = models.CharField(max_length=MAX_URL_LENGTH)
    resource = models.CharField(max_length=MAX_URL_LENGTH)
    scope = models.CharField(max_length=MAX_SCOPE_LENGTH, blank=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("sign-in attempt")
        indexes = [models.Index(fields=["expires_at"], name="oauth_attempt_expiry")]

    def __str__(self) -> str:
        return f"sign-in at {self.issuer}"


class ToolSighting(WorkspaceModel):
    """A tool, as one person's account was shown it: where each signs in, each may be offered other tools."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tool = models.ForeignKey(
        "mcp_servers.McpTool", on_delete=models.CASCADE, related_name="sightings"
    )
    definition_hash = models.CharField(max_length=64)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("tool sighting")
        constraints = [
            models.UniqueConstraint(fields=["user", "tool"], name="tool_sighting_once"),
        ]

    def __str__(self) -> str:
        return f"{self.tool_id} as {self.user_id} sees it"
