"""Programs that want to be told, and what is on its way to them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.delivery.outbox import Delivery
from workspaces.scoping import WorkspaceModel
from workspaces.secrets import EncryptedTextField


class WebhookEndpoint(WorkspaceModel):
    """An address of a program, the key that signs what it is sent, and what it wants to hear."""

    url = models.URLField(_("URL"), max_length=500)
    secret = EncryptedTextField(_("signing secret"))
    events = models.JSONField(default=list, help_text=_("Kinds of events; see the API's pages."))
    is_active = models.BooleanField(default=True)
    last_error = models.CharField(max_length=200, blank=True, editable=False)
    last_delivered_at = models.DateTimeField(null=True, editable=False)

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(Delivery):
    """One event for one endpoint, written with the change that it tells of and sent afterwards."""

    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(max_length=40)
    payload = models.JSONField()

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="webhook_due")]

    def __str__(self) -> str:
        return f"{self.event} ({self.status})"
