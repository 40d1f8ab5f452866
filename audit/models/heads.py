"""Where each chain stands: kept beside the seals so that nobody has to search for it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class AuditHead(models.Model):
    """The newest place of a chain. It proves nothing: verification recomputes it from the seals."""

    chain_id = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    stated_seq = models.BigIntegerField(default=0, help_text=_("What the newest checkpoint says."))
    verified_seq = models.BigIntegerField(
        default=0, help_text=_("Up to where it was last verified.")
    )
    verified_hash = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"{self.chain_id} {self.seq}"
