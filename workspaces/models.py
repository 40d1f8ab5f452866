"""What ties people and workspaces: memberships, invitations, API tokens."""

from __future__ import annotations

from typing import Any, Final, Self
from uuid import UUID

from django.contrib.sessions.models import Session
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.actors import Role
from workspaces.jobs.installation import BackgroundJob, InstalledVersion, WorkerSeen
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedTextField
from workspaces.tenancy import (
    Clock,
    DateFormat,
    NumberFormat,
    PersonPicture,
    Theme,
    User,
    Workspace,
    WorkspaceQuery,
)

__all__ = [
    "ROLE_CHOICES",
    "ROLE_WORDS",
    "AccessRequest",
    "ApiToken",
    "BackgroundJob",
    "Clock",
    "DateFormat",
    "IdempotentRequest",
    "Installation",
    "InstalledVersion",
    "Invitation",
    "JoinLink",
    "Membership",
    "NumberFormat",
    "PersonPicture",
    "RequestKind",
    "RequestStatus",
    "SavedListView",
    "Theme",
    "TwoStepSecret",
    "User",
    "WorkerSeen",
    "Workspace",
    "WorkspaceQuery",
    "WorkspaceSession",
]

ROLE_WORDS: Final = {Role.OWNER: _("Owner"), Role.ADMIN: _("Admin"), Role.MEMBER: _("Member")}
ROLE_CHOICES: Final = [(role.value, words) for role, words in ROLE_WORDS.items()]


class MembershipQuerySet(WorkspaceQuerySet["Membership"]):
    """Through the door come only members who may do something: whoever is suspended is not among them."""

    def also_suspended(self, workspace: Workspace | UUID | str) -> MembershipQuerySet:
        """All members of a workspace, for the pages that manage them."""
        return super()._scoped().filter(workspace_id=getattr(workspace, "pk", workspace))

    def _scoped(self) -> Self:
        return super()._scoped().filter(suspended_at=None)


class Membership(WorkspaceModel):
    """A person in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=ROLE_CHOICES, default=Role.MEMBER.value)
    is_auditor = models.BooleanField(
        _("auditor"),
        default=False,
        help_text=_(
            "May read the audit log with the arguments and results of calls, and export it."
        ),
    )
    suspended_at = models.DateTimeField(null=True, blank=True, editable=False)
    suspension_reason = models.CharField(
        max_length=300, blank=True, default="", db_default="", editable=False
    )

    objects = models.Manager.from_queryset(MembershipQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in Role]),
                name="membership_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.get_role_display()})"


class Invitation(WorkspaceModel):
    """A single-use offer of a membership, bound to an e-mail address."""

    email = models.EmailField(_("e-mail address"))
    role = models.CharField(max_length=10, choices=ROLE_CHOICES, default=Role.MEMBER.value)
    is_auditor = models.BooleanField(_("auditor"), default=False)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    is_link_shown = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_(
            "The inviter saw the link, so whoever uses it has not shown that the address is theirs."
        ),
    )
    invited_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    expires_at = models.DateTimeField(editable=False)
    accepted_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(WorkspaceModel.Meta):
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.email} as {self.get_role_display()}"

    @property
    def is_open(self) -> bool:
        return (
            self.accepted_at is None
            and self.revoked_at is None
            and self.expires_at > timezone.now()
        )


class JoinLink(WorkspaceModel):
    """An offer of a membership to everybody with a confirmed address of one mail domain."""

    email_domain = models.CharField(_("mail domain"), max_length=253)
    role = models.CharField(max_length=10, choices=ROLE_CHOICES, default=Role.MEMBER.value)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text=_("How its token begins."))
    most_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0, editable=False)
    made_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, related_name="+", editable=False
    )
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta(WorkspaceModel.Meta):
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(uses__lte=models.F("most_uses")), name="join_link_uses"
            )
        ]

    def __str__(self) -> str:
        return f"@{self.email_domain} as {self.get_role_display()}"

    @property
    def is_open(self) -> bool:
        """Whether it lets people in, as far as the link itself goes."""
        return (
            self.revoked_at is None
            and self.uses < self.most_uses
            and self.expires_at > timezone.now()
        )


class WorkspaceSession(WorkspaceModel):
    """A browser session of a person, as it was used in one workspace. It goes with the session."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    user_agent = models.CharField(max_length=300, blank=True)
    ip_address = models.GenericIPAddressField(null=True)
    last_seen_at = models.DateTimeField()

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("browser session")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "session"], name="session_in_workspace")
        ]

    def __str__(self) -> str:
        return f"session of {self.user}"


class RequestKind(models.TextChoices):
    """What a member misses."""

    SERVER = "server", _("Server")
    TOOL = "tool", _("Tool")
    OTHER = "other", _("Something else")


class RequestStatus(models.TextChoices):
    """What became of a request."""

    OPEN = "open", _("Waiting")
    GRANTED = "granted", _("Granted")
    DECLINED = "declined", _("Declined")


class AccessRequest(WorkspaceModel):
    """A member asks for something that they miss; an administrator decides."""

    requester = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=RequestKind.choices)
    name = models.CharField(max_length=200)
    reason = models.CharField(max_length=1000)
    status = models.CharField(
        max_length=10, choices=RequestStatus.choices, default=RequestStatus.OPEN
    )
    decided_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True)

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("request")
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["workspace", "status"], name="request_by_status")]

    def __str__(self) -> str:
        return f"{self.name} for {self.requester}"


def own_ones_go(collector: Any, field: Any, rows: Any, using: str) -> None:
    """When a person is deleted, delete their own views with them, and leave the shared ones without an owner."""
    models.CASCADE(collector, field, rows.filter(is_shared=False), using)
    models.SET_NULL(collector, field, rows.filter(is_shared=True), using)


class SavedListView(WorkspaceModel):
    """Filters of a list of the admin under a name, for oneself or for all administrators who see the list."""

    owner = models.ForeignKey(User, on_delete=own_ones_go, null=True, related_name="+")
    """Who saved it; None for a shared one whose owner has left."""
    list = models.CharField(max_length=100, help_text=_("App and model, with a dot between them."))
    name = models.CharField(max_length=80)
    query = models.TextField(help_text=_("As in the address."))
    is_shared = models.BooleanField(default=False)

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("saved view of a list")
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "list", "owner", "name"],
                condition=models.Q(is_shared=False),
                name="own_list_view_once",
            ),
            models.UniqueConstraint(
                fields=["workspace", "list", "name"],
                condition=models.Q(is_shared=True),
                name="shared_list_view_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiTokenQuerySet(WorkspaceQuerySet["ApiToken"]):
    def visible_to(self, user: User) -> ApiTokenQuerySet:
        """A token is its owner's alone."""
        return self._scoped().filter(user=user)

    def living(self) -> ApiTokenQuerySet:
        """Those that have not run out, by the database's clock."""
        return self.filter(expires_at__gt=Now())


class ApiToken(WorkspaceModel):
    """A person's key to the API of one workspace: hashed, scoped, expiring.

    The plain token is shown once, when it is issued; `tokens.authenticate` finds it again.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text=_("How the token begins."))
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = models.Manager.from_queryset(ApiTokenQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("API token")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name


class IdempotentRequest(WorkspaceModel):
    """The stored answer to a POST that carried an `Idempotency-Key`."""

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, null=True, related_name="+", editable=False
    )  # type: ignore[assignment]  # None: the request was about the whole installation
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, help_text=_("SHA-256 of method, path and body."))
    status_code = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "key"], name="idempotent_request_once"
            ),
            models.UniqueConstraint(
                fields=["user", "key"],
                condition=models.Q(workspace=None),
                name="idempotent_platform_request_once",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Installation(models.Model):
    """The one row about the whole installation; see `workspaces.restore_detection`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    epoch = models.PositiveBigIntegerField(default=0, help_text=_("Grows as long as it runs."))
    restored_at = models.DateTimeField(
        null=True, help_text=_("Found to be restored from a backup, and not confirmed yet.")
    )

    def __str__(self) -> str:
        return f"installation at {self.epoch}"


class TwoStepSecret(models.Model):
    """What a person's two-step verification rests on: the key of their app, or what their recovery codes are made of.

    allauth's row of the step has only this row's id.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", editable=False)
    secret = EncryptedTextField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.pk}"
