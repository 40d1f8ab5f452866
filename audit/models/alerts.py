"""What is watched in the log, what was found, and who is told."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.delivery.outbox import Delivery
from workspaces.models import User
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedTextField

MOST_WINDOW_MINUTES = 24 * 60
LONGEST_URL = 500
"""Of a line in the bell."""


class AlertRule(WorkspaceModel):
    """A threshold over the log's last minutes."""

    class Condition(models.TextChoices):
        CONNECTION = "connection", _("Connection failures")
        TIMEOUT = "timeout", _("Timeouts")
        ERROR_RATE = "error_rate", _("Error rate")
        REFUSAL = "refusal", _("Refused calls")
        QUOTA = "quota", _("Calls over a quota")
        TAMPERING = "tampering", _("Findings in the log itself")
        APPROVAL = "approval", _("Approvals waiting")
        SPENDING = "spending", _("Spending limit used")
        ENTRIES = "entries", _("Entries that match a filter")

    name = models.CharField(max_length=100)
    condition = models.CharField(max_length=12, choices=Condition.choices)
    threshold = models.PositiveIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
        help_text=_(
            "From how many on; for an error rate or a spending limit, from how many per cent."
        ),
    )
    window_minutes = models.PositiveIntegerField(
        default=15,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_WINDOW_MINUTES)],
        help_text=_("Of how many minutes. Approvals count once they have waited this long."),
    )
    least_calls = models.PositiveIntegerField(
        default=10, help_text=_("Of fewer calls no error rate is made.")
    )
    server_name = models.CharField(_("server"), max_length=200, blank=True)
    tool_name = models.CharField(_("tool"), max_length=256, blank=True)
    query = models.TextField(
        _("filter"),
        blank=True,
        default="",
        db_default="",
        help_text=_("In the log's filter language, beside server and tool."),
    )
    is_active = models.BooleanField(default=True)
    remind_hours = models.PositiveIntegerField(
        default=24, validators=[MaxValueValidator(24 * 30)], help_text=_("0: never.")
    )
    tells_bell = models.BooleanField(_("in-app bell"), default=True)
    emails = models.JSONField(_("e-mail to"), default=list, blank=True)
    webhook_url = models.CharField(_("webhook"), max_length=2048, blank=True)
    webhook_secret = EncryptedTextField()

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("alert rule")
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class Alert(WorkspaceModel):
    """One time that a rule's threshold was crossed, from then until it was no longer."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    value = models.FloatField(help_text=_("When last looked at."))
    peak = models.FloatField()
    told_at = models.DateTimeField(help_text=_("When people were last told."))

    class Meta(WorkspaceModel.Meta):
        ordering = ["-started_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["rule"], condition=models.Q(ended_at=None), name="alert_open_once"
            )
        ]
        indexes = [models.Index(fields=["workspace", "-started_at"], name="alert_by_time")]

    def __str__(self) -> str:
        return f"alert of {self.rule_id}"


class AlertDelivery(Delivery):
    """A mail or webhook on its way, written in the alert's own transaction."""

    class Channel(models.TextChoices):
        EMAIL = "email"
        WEBHOOK = "webhook"

    rule = models.ForeignKey(
        AlertRule, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    """None: it was deleted, and this is the last word on its alert."""
    channel = models.CharField(max_length=10, choices=Channel.choices)
    target = models.CharField(max_length=2048)
    payload = models.JSONField()
    secret = EncryptedTextField()
    """What signs it once its rule is gone; until then the rule knows."""

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("alert delivery")
        verbose_name_plural = _("alert deliveries")
        ordering = ["id"]
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="alert_delivery_due")]

    def __str__(self) -> str:
        return f"{self.channel} ({self.status})"

    @property
    def named_target(self) -> str:
        """Where it goes, for whoever reads the log: of a webhook the host alone, since the rest may be a key to it."""
        is_mail = self.channel == self.Channel.EMAIL
        return self.target if is_mail else urlsplit(self.target).hostname or ""


class NoticeQuerySet(WorkspaceQuerySet["Notice"]):
    def visible_to(self, user: User) -> NoticeQuerySet:
        """A notice is for one person."""
        return self._scoped().filter(user=user)


class Notice(WorkspaceModel):
    """A line in a person's bell."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20)
    title = models.CharField(max_length=200)
    text = models.CharField(max_length=500, blank=True)
    url = models.CharField(max_length=LONGEST_URL, blank=True, help_text=_("A path of ours."))
    read_at = models.DateTimeField(null=True)

    objects = models.Manager.from_queryset(NoticeQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        indexes = [models.Index(fields=["workspace", "user", "read_at"], name="notice_unread")]

    def __str__(self) -> str:
        return self.title
