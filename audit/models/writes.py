"""Writes of configuration that no service announced."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class OutsideWrite(models.Model):
    """A row that was written past the services; triggers note it, and it becomes an entry within seconds."""

    id = models.BigAutoField(primary_key=True)
    table_name = models.CharField(max_length=63)
    row_id = models.CharField(max_length=64, help_text=_("As the database writes it."))
    verb = models.CharField(max_length=6)
    workspace_key = models.CharField(
        max_length=64, default="", help_text=_("The row's workspace, as the database writes it.")
    )
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    xact = models.CharField(max_length=20, db_default="", default="")

    class Meta:
        indexes = [models.Index(fields=["row_id"], name="audit_outside_row")]

    def __str__(self) -> str:
        return f"{self.verb} {self.table_name} {self.row_id}"
