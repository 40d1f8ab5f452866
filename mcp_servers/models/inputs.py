"""What servers asked people for while they worked on a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.inputs import InputKind
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedTextField

if TYPE_CHECKING:
    from workspaces.models import User


class InputStatus(models.TextChoices):
    PENDING = "pending", _("Waiting")
    ACCEPTED = "accepted", _("Answered")
    DECLINED = "declined", _("Declined")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Ran out")
    REFUSED = "refused", _("Turned away")


class InputRequestQuerySet(WorkspaceQuerySet["InputRequest"]):
    """Requests, each for one person's eyes."""

    def visible_to(self, user: User) -> Self:
        """Those that were put to this person."""
        return super().visible_to(user).filter(asked_of=user)


class InputRequest(WorkspaceModel):
    """One elicitation or sampling request of a server; the person's answer goes to it and to nobody else."""

    call_id = models.UUIDField(editable=False)
    """The call, resource read or prompt during which it came."""
    conversation_id = models.UUIDField(null=True, editable=False)
    turn_id = models.UUIDField(null=True, editable=False)
    asked_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    server_id = models.UUIDField(editable=False)
    server_name = models.CharField(max_length=60, editable=False)
    tool_name = models.CharField(max_length=256, editable=False)
    kind = models.CharField(
        max_length=10, choices=[(k.value, k.value) for k in InputKind], editable=False
    )
    key = models.CharField(max_length=200, editable=False)
    fingerprint = models.CharField(max_length=64, editable=False)
    """Of what is asked: the answer to the same question in a repeated call is the same."""
    message = models.TextField(blank=True, editable=False)
    schema = models.JSONField(default=dict, editable=False)
    url = models.TextField(blank=True, editable=False)
    elicitation_id = models.CharField(max_length=200, blank=True, editable=False)
    params = models.JSONField(default=dict, editable=False)
    warnings = models.JSONField(default=list, editable=False)
    """What the person should know before answering, in plain words. Of one that was turned away: why it was."""
    status = models.CharField(
        max_length=10, choices=InputStatus.choices, default=InputStatus.PENDING
    )
    answer = EncryptedTextField()
    """JSON; for the server, and for the person who gave it."""
    tokens_used = models.PositiveIntegerField(default=0)
    """Sampling: what it cost."""
    expires_at = models.DateTimeField(editable=False)
    answered_at = models.DateTimeField(null=True)

    objects = models.Manager.from_queryset(InputRequestQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        verbose_name = _("input request")
        indexes = [
            models.Index(fields=["workspace", "conversation_id"], name="input_of_conversation"),
            models.Index(fields=["call_id"], name="input_of_call"),
            models.Index(fields=["status", "expires_at"], name="input_running_out"),
            models.Index(fields=["server_id", "created_at"], name="input_of_server"),
        ]

    def __str__(self) -> str:
        return f"{self.server_name}: {self.kind} ({self.status})"
