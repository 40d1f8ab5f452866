"""How long a workspace's log is kept, what is masked in it, and what must not be removed."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.models import Workspace
from workspaces.scoping import ScopedModel

DEFAULT_BODY_BYTES = 1024 * 1024
MOST_BODY_BYTES = 64 * 1024 * 1024


class AuditPolicy(ScopedModel):
    """A workspace's own settings of its log; without a row the defaults hold and nothing is ever removed."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="audit_policy"
    )
    keep_days = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text=_("Empty: for ever.")
    )
    keep_entries = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1000)], help_text=_("Empty: all.")
    )
    keep_bodies_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Empty: as long as their entries."),
    )
    body_bytes = models.PositiveIntegerField(
        default=DEFAULT_BODY_BYTES,
        validators=[MaxValueValidator(MOST_BODY_BYTES)],
        help_text=_(
            "Of arguments and of a result, at most this much is kept. 0: nothing but the preview."
        ),
    )
    masked_paths = models.JSONField(
        default=list, blank=True, help_text=_("JSONPath (RFC 9535) into arguments and results.")
    )
    detectors = models.JSONField(default=list, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(ScopedModel.Meta):
        verbose_name = _("audit settings")
        verbose_name_plural = _("audit settings")

    def __str__(self) -> str:
        return "Audit settings"


class LegalHold(ScopedModel):
    """While one stands, nothing of the workspace's log is removed or erased."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.UUIDField()
    reason = models.CharField(max_length=500)
    placed_by = models.CharField(max_length=254)
    placed_at = models.DateTimeField(auto_now_add=True)
    released_by = models.CharField(max_length=254, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta(ScopedModel.Meta):
        ordering = ["-placed_at"]
        indexes = [models.Index(fields=["workspace_id", "-placed_at"], name="audit_hold_by_time")]

    def __str__(self) -> str:
        return self.reason


class PendingErasure(ScopedModel):
    """An erasure that is on record and not done yet. It waits while a legal hold stands, and goes on after it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.UUIDField()
    person_id = models.UUIDField()
    asked_at = models.DateTimeField(help_text=_("Of what was entered up to then."))

    class Meta(ScopedModel.Meta):
        ordering = ["asked_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "person_id"], name="audit_erasure_pending_once"
            )
        ]

    def __str__(self) -> str:
        return f"erasure for {self.person_id}"
