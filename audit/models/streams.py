"""Where sealed entries are sent to, and how far each sink has confirmed them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.models import Workspace
from workspaces.scoping import ScopedModel
from workspaces.secrets import EncryptedJSONField, EncryptedTextField


class AuditStream(ScopedModel):
    """A sink that is sent every sealed entry of one workspace, or of the whole platform."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", _("Signed webhook")
        SYSLOG = "syslog", _("Syslog over TLS")
        OTLP = "otlp", _("OpenTelemetry (OTLP)")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(
        Workspace, null=True, on_delete=models.CASCADE, related_name="+", editable=False
    )
    """None: the whole platform's."""
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    target = models.CharField(max_length=2048, help_text=_("A URL; for syslog host:port."))
    secret = EncryptedTextField(_("signing secret"))
    headers = EncryptedJSONField()
    ca_certificates = models.TextField(blank=True, help_text=_("PEM; empty: the system's."))
    client_certificate = models.TextField(blank=True, help_text=_("PEM."))
    client_key = EncryptedTextField()
    is_paused = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True, editable=False)

    class Meta(ScopedModel.Meta):
        verbose_name = _("audit stream")
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class StreamState(models.Model):
    """How sending goes; apart from the settings, so that nobody who changes those undoes it."""

    stream = models.OneToOneField(
        AuditStream, on_delete=models.CASCADE, primary_key=True, related_name="state"
    )
    claim = models.UUIDField(null=True, help_text=_("Of the process that sends now."))
    claimed_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text=_("In a row."))
    failing_since = models.DateTimeField(
        null=True, help_text=_("The first of the failures in a row.")
    )
    last_failed_at = models.DateTimeField(null=True, help_text=_("Also once it sends again."))
    next_attempt_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    last_sent_at = models.DateTimeField(null=True)
    sent = models.PositiveBigIntegerField(default=0, help_text=_("Entries confirmed so far."))
    refused = models.PositiveBigIntegerField(
        default=0, help_text=_("Entries that the sink took the batch of, but not them.")
    )

    def __str__(self) -> str:
        return str(self.stream_id)


class StreamCursor(models.Model):
    """The last place of a chain that a sink has confirmed."""

    id = models.BigAutoField(primary_key=True)
    stream = models.ForeignKey(AuditStream, on_delete=models.CASCADE, related_name="cursors")
    chain_id = models.UUIDField()
    seq = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["stream", "chain_id"], name="audit_stream_cursor_once")
        ]

    def __str__(self) -> str:
        return f"{self.chain_id} {self.seq}"
