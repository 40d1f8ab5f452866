"""What a server may ask while a tool runs: the person, the model, and for its folders."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class SamplingPolicy(models.TextChoices):
    """Whether a server may have the model asked something."""

    OFF = "off", _("Never")
    ASK = "ask", _("Ask the person")
    AUTO = "auto", _("Within the budget, without asking")


class ServerQuestions(models.Model):
    """The part of a server's row that decides on elicitation, sampling and roots."""

    answers_elicitation = models.BooleanField(
        _("may ask people"),
        default=True,
        help_text=_("Whether the server may ask the person questions while a tool runs."),
    )
    sampling = models.CharField(
        _("may ask the model"),
        max_length=5,
        choices=SamplingPolicy.choices,
        default=SamplingPolicy.OFF,
        help_text=_("Whether the server may have the model write something for it."),
    )
    sampling_daily_tokens = models.PositiveIntegerField(
        default=20_000, help_text=_("What its requests to the model may cost in a day, in tokens.")
    )
    sampling_provider_id = models.UUIDField(null=True, blank=True)
    """The model provider for its requests; none: that of the bud."""
    sampling_model = models.CharField(max_length=200, blank=True)
    roots = models.JSONField(
        default=list,
        blank=True,
        help_text=_('Folders the server is told it may work in: a list of {"uri", "name"}.'),
    )

    class Meta:
        abstract = True
