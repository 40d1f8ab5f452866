"""Counters over sealed entries, so that charts need not read the log."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.scoping import ScopedModel


class Grain(models.TextChoices):
    """The piece of time of a counter, in UTC."""

    HOUR = "h", _("hour")
    DAY = "d", _("day")
    MONTH = "m", _("month")


class Dimension(models.TextChoices):
    """What a counter is of."""

    ALL = "all"
    SERVER = "server"
    TOOL = "tool"
    ACTOR = "actor"
    BUD = "bud"
    SOURCE = "source"
    MODEL = "model"
    LAYER = "layer"


class Measure(models.TextChoices):
    """What a histogram is of."""

    DURATION = "duration"
    WAIT = "wait"


class _Counter(ScopedModel):
    """Something counted in a piece of time."""

    id = models.BigAutoField(primary_key=True)
    dimension = models.CharField(max_length=8, choices=Dimension.choices)
    grain = models.CharField(max_length=1, choices=Grain.choices)
    start = models.DateTimeField()
    value = models.CharField(max_length=256, blank=True)
    count = models.BigIntegerField()

    class Meta(ScopedModel.Meta):
        abstract = True


class AuditRollup(_Counter):
    """How many entries of a kind there were in a piece of time. Entries that are removed later stay counted."""

    workspace_id = models.UUIDField(help_text=_("Of a workspace, or the platform's chain."))
    second = models.CharField(
        max_length=254, blank=True, help_text=_("A tool's server, an actor's name, a layer's rule.")
    )
    action = models.CharField(max_length=40)
    outcome = models.CharField(max_length=20, blank=True)
    timed = models.BigIntegerField(help_text=_("How many of them have a duration."))
    duration_ms = models.BigIntegerField(help_text=_("The sum."))
    waited = models.BigIntegerField(help_text=_("How many of them ended a wait for approval."))
    wait_ms = models.BigIntegerField(help_text=_("The sum."))

    class Meta(_Counter.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("workspace_id", "dimension", "grain", "start"),
                    *("value", "second", "action", "outcome"),
                ],
                name="audit_rollup_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H} {self.dimension} {self.value} {self.action}: {self.count}"


class AuditHistogram(_Counter):
    """How many durations fell into a bucket of the fixed scale, in a piece of time."""

    workspace_id = models.UUIDField()
    measure = models.CharField(max_length=8, choices=Measure.choices)
    second = models.CharField(max_length=254, blank=True)
    bucket = models.PositiveSmallIntegerField()

    class Meta(_Counter.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("workspace_id", "dimension", "measure", "grain", "start"),
                    *("value", "second", "bucket"),
                ],
                name="audit_histogram_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H} {self.dimension} {self.value} {self.bucket}: {self.count}"


class RollupCursor(models.Model):
    """Up to where a chain is counted. Its lock makes each entry count exactly once."""

    chain_id = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField(default=0)
    months_seq = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text=_("Up to where months are counted. If it is not `seq`, they are made anew."),
    )
    moved_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.chain_id} {self.seq}"
