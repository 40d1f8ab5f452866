"""Full arguments and results, apart from the entries and each under a key of its own."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from workspaces.database.prepared_writes import WrittenOften
from workspaces.scoping import WorkspaceManager
from workspaces.secrets import EncryptedTextField


class AuditBody(WrittenOften):
    """What was sent or came back, redacted, up to the workspace's limit. Deleting the row destroys the key."""

    entry_id = models.UUIDField(primary_key=True)
    workspace_id = models.UUIDField(null=True)
    key = EncryptedTextField(help_text=_("The body's own key, base64 of 32 bytes."))
    arguments = models.BinaryField(null=True)
    result = models.BinaryField(null=True)
    is_cut = models.BooleanField(
        default=False, help_text=_("More than the limit: the beginning is kept.")
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WorkspaceManager()
    unscoped = models.Manager()

    class Meta:
        base_manager_name = "unscoped"
        default_manager_name = "unscoped"
        verbose_name = _("audit body")
        verbose_name_plural = _("audit bodies")
        indexes = [models.Index(fields=["workspace_id", "created_at"], name="audit_body_by_age")]

    def __str__(self) -> str:
        return f"body of {self.entry_id}"
