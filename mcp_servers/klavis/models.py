"""Klavis, a hosted MCP provider: a workspace's account there, the instances made with it, and deletions still to be made.

This table of instances is the truth; the provider is brought to it, and asked what became of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from mcp_servers.models.servers import McpServer
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.scoping import ScopedModel, WorkspaceManager, WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedJSONField, EncryptedTextField

if TYPE_CHECKING:
    from workspaces.models import User

HOST: Final = "klavis"
"""In `McpServer.hosted_by`, and as a source of the catalogue."""
DEFAULT_BASE_URL: Final = "https://api.klavis.ai"


class KlavisDialect(models.TextChoices):
    """Which form of the provider's API a deployment speaks."""

    AUTO = "auto", _("Find out")
    CURRENT = "current", _("Current")
    OLDER = "older", _("Older, up to 2.7")


class KlavisAccount(WorkspaceModel):
    """The workspace's account at the provider. Its key goes to its base URL and nowhere else."""

    secrets_label: ClassVar[str] = "mcp_servers.klavisaccount"
    """These tables were the servers' app's; their names, and the label of what is encrypted in them, stay."""
    base_url = models.CharField(_("base URL"), max_length=MAX_URL_LENGTH, default=DEFAULT_BASE_URL)
    api_key = EncryptedTextField(_("API key"))
    dialect = models.CharField(
        _("API"), max_length=10, choices=KlavisDialect.choices, default=KlavisDialect.AUTO
    )
    is_active = models.BooleanField(_("switched on"), default=True)
    found_dialect = models.CharField(max_length=10, blank=True, editable=False)
    """What the automatic choice found to work."""
    user_key = EncryptedTextField(editable=False)
    """Names people at the provider; see people.external_id()."""
    catalogue = models.JSONField(default=list, editable=False)
    """What the provider offers, as it was last read: a list of {"name", "title", "description", "needs_sign_in"}."""
    catalogue_read_at = models.DateTimeField(null=True, editable=False)
    checked_at = models.DateTimeField(null=True, editable=False)
    problem = models.CharField(max_length=300, blank=True, editable=False)
    """Why the provider cannot be used, in plain words."""

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        db_table = "mcp_servers_klavisaccount"
        verbose_name = _("Klavis account")
        constraints = [
            models.UniqueConstraint(fields=["workspace"], name="klavis_account_one"),
        ]

    def __str__(self) -> str:
        return "Klavis"

    @property
    def is_usable(self) -> bool:
        """It is switched on, and has a key."""
        return self.is_active and bool(self.api_key)


class InstanceKind(models.TextChoices):
    SINGLE = "single", _("One service")
    STRATA = "strata", _("Several services behind one server")


class InstanceState(models.TextChoices):
    CREATING = "creating", _("Being made")
    WAITING_FOR_SIGN_IN = "waiting_for_sign_in", _("Waiting for sign-in")
    READY = "ready", _("Ready")
    FAILED = "failed", _("Failed")


class KlavisInstanceQuerySet(WorkspaceQuerySet["KlavisInstance"]):
    """Instances; a person's own are nobody else's to see."""

    def visible_to(self, user: User) -> Self:
        """Those of the workspace, and this person's own."""
        return super().visible_to(user).filter(Q(user__isnull=True) | Q(user=user))


class KlavisInstance(WorkspaceModel):
    """A server that the provider runs for the workspace or for one person. Its URL is all it takes to use it: a secret."""

    secrets_label: ClassVar[str] = "mcp_servers.klavisinstance"
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        editable=False,
    )
    """Whose it is; none: the workspace's."""
    begun_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    """Who began the sign-in that is under way, and alone sees where it goes."""
    server_name = models.CharField(max_length=200, editable=False)
    """As the provider names the service."""
    title = models.CharField(max_length=60, editable=False)
    kind = models.CharField(
        max_length=10, choices=InstanceKind.choices, default=InstanceKind.SINGLE, editable=False
    )
    services = models.JSONField(default=list, editable=False)
    """Of several behind one server: their names at the provider."""
    instance_id = EncryptedTextField(editable=False)
    server_url = EncryptedTextField(editable=False)
    oauth_urls = EncryptedJSONField(editable=False)
    """Where to sign in, by service; forgotten as soon as nobody waits for it."""
    state = models.CharField(
        max_length=20,
        choices=InstanceState.choices,
        default=InstanceState.CREATING,
        editable=False,
    )
    reason = models.CharField(max_length=300, blank=True, editable=False)
    """Why it is in that state, in plain words."""
    is_used_everywhere = models.BooleanField(default=True, db_default=True, editable=False)
    bud_ids = models.JSONField(default=list, db_default=[], editable=False)
    """Where its server is to be used, for when it is there: as whoever installed it said."""
    is_read_only = models.BooleanField(_("only reads"), default=False)
    uses_rest = models.BooleanField(_("through the provider's REST interface"), default=False)
    """For where a direct connection is impossible."""
    polls = models.PositiveIntegerField(default=0, editable=False)
    next_poll_at = models.DateTimeField(null=True, editable=False)
    poll_until = models.DateTimeField(null=True, editable=False)
    last_checked_at = models.DateTimeField(null=True, editable=False)
    claimed_until = models.DateTimeField(null=True, editable=False)
    """Somebody is changing it at the provider, which no transaction waits for."""
    server = models.OneToOneField(
        McpServer, null=True, on_delete=models.SET_NULL, related_name="klavis", editable=False
    )

    objects = models.Manager.from_queryset(KlavisInstanceQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        db_table = "mcp_servers_klavisinstance"
        ordering = ["title", "id"]
        verbose_name = _("Klavis instance")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "server_name"],
                condition=Q(user__isnull=False),
                name="klavis_instance_of_person",
            ),
            models.UniqueConstraint(
                fields=["workspace", "server_name"],
                condition=Q(user__isnull=True),
                name="klavis_instance_of_workspace",
            ),
        ]
        indexes = [models.Index(fields=["state", "next_poll_at"], name="klavis_instance_polls")]

    def __str__(self) -> str:
        return self.title


class RemovalKind(models.TextChoices):
    INSTANCE = "instance", _("Instance")
    STRATA = "strata", _("Several services")
    USER = "user", _("Everything of one account")


class KlavisRemoval(ScopedModel):
    """A deletion that the provider has not confirmed yet. Outlives the instance, the account and the workspace."""

    secrets_label: ClassVar[str] = "mcp_servers.klavisremoval"
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.UUIDField(editable=False)
    base_url = models.CharField(max_length=MAX_URL_LENGTH, editable=False)
    dialect = models.CharField(max_length=10, editable=False)
    api_key = EncryptedTextField(editable=False)
    """A copy, bound to this row: the account may be gone by the time the provider answers."""
    kind = models.CharField(max_length=10, choices=RemovalKind.choices, editable=False)
    remote_id = EncryptedTextField(editable=False)
    label = models.CharField(max_length=100, editable=False)
    """What it was, for administrators."""
    attempts = models.PositiveIntegerField(default=0, editable=False)
    next_attempt_at = models.DateTimeField(default=timezone.now, editable=False)
    last_error = models.CharField(max_length=300, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True, editable=False)

    class Meta(ScopedModel.Meta):
        db_table = "mcp_servers_klavisremoval"
        ordering = ["created_at", "id"]
        verbose_name = _("deletion at Klavis")
        verbose_name_plural = _("deletions at Klavis")
        indexes = [models.Index(fields=["next_attempt_at"], name="klavis_removal_due")]

    def __str__(self) -> str:
        return self.label
