"""What makes the log provable: places in a chain, signed checkpoints, signed traces of what was removed."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

PLATFORM_CHAIN: Final = UUID(int=0)
"""The chain of entries that belong to no workspace. Every workspace's chain has the workspace's id."""


class PendingSeal(models.Model):
    """An entry that waits for its place; a trigger puts it here in the entry's own transaction."""

    id = models.BigAutoField(primary_key=True)
    entry_id = models.UUIDField()
    xact = models.CharField(
        max_length=20,
        db_default="",
        default="",
        help_text=_("PostgreSQL's number of the transaction."),
    )

    def __str__(self) -> str:
        return str(self.entry_id)


class AuditSeal(models.Model):
    """An entry's place in its chain. Never changed; deleted only behind a tombstone."""

    entry_id = models.UUIDField(primary_key=True)
    chain_id = models.UUIDField()
    seq = models.BigIntegerField(help_text=_("1, 2, 3 … in each chain, without a gap."))
    hash = models.CharField(
        max_length=64, help_text=_("SHA-256 over the entry, its place and the hash before it.")
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain_id", "seq"], name="audit_seal_place")]

    def __str__(self) -> str:
        return f"{self.chain_id} {self.seq}"


class AuditCheckpoint(models.Model):
    """A signed statement of where every chain stood. Never changed or deleted."""

    class Kind(models.TextChoices):
        INTERVAL = "interval"
        ROTATION = "rotation"
        END = "end"
        RESTORED = "restored"
        KEY_LOST = "key_lost"

    number = models.BigIntegerField(primary_key=True, help_text=_("1, 2, 3 … without a gap."))
    kind = models.CharField(max_length=10, choices=Kind.choices)
    made_at = models.DateTimeField()
    statement = models.TextField(help_text=_("Exactly what is signed: RFC 8785 JSON."))
    heads = models.TextField(  # noqa: DJ001 - a new column without null would rebuild the guarded table
        null=True,
        help_text=_("Where the chains stood that the statement names only by digest, as JSON."),
    )
    hash = models.CharField(max_length=64, help_text=_("SHA-256 of the statement."))
    key_id = models.CharField(max_length=16)
    signature = models.CharField(max_length=100, help_text=_("Ed25519, base64."))
    countersignature = models.CharField(
        max_length=100, blank=True, help_text=_("Of the new key, when keys change.")
    )

    def __str__(self) -> str:
        return f"checkpoint {self.number}"


class AuditTombstone(models.Model):
    """A signed statement of what was removed, and why. Never changed or deleted."""

    class Kind(models.TextChoices):
        ENTRIES = "entries", _("entries and their bodies")
        BODIES = "bodies", _("bodies and previews")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    chain_id = models.UUIDField()
    kind = models.CharField(max_length=10, choices=Kind.choices)
    first_seq = models.BigIntegerField()
    last_seq = models.BigIntegerField()
    reason = models.CharField(max_length=200)
    made_at = models.DateTimeField(default=timezone.now)
    statement = models.TextField(help_text=_("Exactly what is signed: RFC 8785 JSON."))
    key_id = models.CharField(max_length=16)
    signature = models.CharField(max_length=100, help_text=_("Ed25519, base64."))

    class Meta:
        indexes = [
            # By the end: the one that covers a place is the next, and not behind all that came before.
            models.Index(
                fields=["chain_id", "kind", "last_seq", "first_seq"], name="audit_tombstone_end"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.first_seq}-{self.last_seq}"
