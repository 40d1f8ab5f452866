"""What people keep of the log's pages: views, schedules, and that they have read it."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.scoping import ScopedModel, WorkspaceModel


class SavedView(WorkspaceModel):
    """Filters of a page under a name, for oneself or for all who see the log."""

    class Page(models.TextChoices):
        LOG = "log"
        REPORTS = "reports"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=80)
    page = models.CharField(max_length=8, choices=Page.choices)
    query = models.TextField(blank=True, help_text=_("As in the address."))
    is_shared = models.BooleanField(default=False)

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "owner", "page", "name"], name="audit_view_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ReportSchedule(WorkspaceModel):
    """A file of the log that is made again and again, and sent or stored."""

    class Cadence(models.TextChoices):
        DAILY = "daily", _("every day")
        WEEKLY = "weekly", _("every Monday")
        MONTHLY = "monthly", _("on the first of the month")

    class Delivery(models.TextChoices):
        MAIL = "mail", _("by e-mail")
        STORAGE = "storage", _("into the file store")

    class Covers(models.TextChoices):
        """Of which time a file is; all of it has passed when the file is made."""

        CADENCE = "", _("The day, week or month before")
        DAY = "day", _("The day before")
        WEEK = "week", _("The 7 days before")
        MONTH = "month", _("The 30 days before")

    name = models.CharField(max_length=80)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    query = models.TextField(blank=True, help_text=_("Filters, as in the address."))
    format = models.CharField(max_length=10)
    cadence = models.CharField(max_length=8, choices=Cadence.choices)
    hour = models.PositiveSmallIntegerField(
        default=6, db_default=6, validators=[MaxValueValidator(23)]
    )
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        db_default="UTC",
        help_text=_("Where it is that hour, and where days begin."),
    )
    covers = models.CharField(
        max_length=5, choices=Covers.choices, blank=True, default="", db_default=""
    )
    delivery = models.CharField(max_length=8, choices=Delivery.choices)
    recipients = models.JSONField(default=list, blank=True, help_text=_("Ids of members."))
    is_active = models.BooleanField(default=True)
    next_run_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    last_ok = models.BooleanField(null=True)
    last_result = models.CharField(max_length=500, blank=True)

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        indexes = [models.Index(fields=["is_active", "next_run_at"], name="audit_schedule_due")]

    def __str__(self) -> str:
        return self.name


class SentFile(WorkspaceModel):
    """A file of the log that was to be made and sent once: of which time, to whom, and how that went.

    It says by itself what the file is of, so that a schedule that is changed or deleted meanwhile changes nothing of it.
    """

    class Status(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    schedule = models.ForeignKey(
        ReportSchedule, on_delete=models.SET_NULL, null=True, related_name="sent_files"
    )
    name = models.CharField(max_length=80)
    query = models.TextField(blank=True)
    format = models.CharField(max_length=10)
    time_zone = models.CharField(max_length=64)
    since = models.DateTimeField()
    until = models.DateTimeField()
    is_trial = models.BooleanField(default=False, help_text=_("For whoever asked for it alone."))
    asked_by = models.CharField(
        max_length=254, blank=True, help_text=_("Who had it made by hand; empty: its time came.")
    )
    due_at = models.DateTimeField(null=True, help_text=_("Empty: it was made by hand."))
    sent_to = models.JSONField(default=list, blank=True, help_text=_("E-mail addresses."))
    stored_as = models.CharField(max_length=500, blank=True)
    entries = models.PositiveBigIntegerField(null=True)
    calls = models.PositiveBigIntegerField(null=True)
    size = models.PositiveBigIntegerField(null=True, help_text=_("In bytes."))
    status = models.CharField(max_length=7, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    fault = models.CharField(max_length=500, blank=True)
    sent_at = models.DateTimeField(null=True)

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("sent file")
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["schedule", "-created_at", "-id"], name="audit_sent_of_schedule"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="audit_sent_by_time"),
        ]

    def __str__(self) -> str:
        return self.name


class SignOff(ScopedModel):
    """That a person reviewed a part of the log, with what it said then. Never changed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace_id = models.UUIDField()
    since = models.DateTimeField()
    until = models.DateTimeField()
    query = models.TextField(blank=True)
    sent_file_id = models.UUIDField(
        null=True, help_text=_("The sent file whose time and filters these are.")
    )
    totals = models.JSONField(default=dict)
    note = models.CharField(max_length=1000, blank=True)
    signed_by_id = models.UUIDField(null=True)
    signed_by = models.CharField(max_length=254)
    signed_at = models.DateTimeField(auto_now_add=True)
    entry_id = models.UUIDField(help_text=_("The entry that says the same in the sealed log."))

    class Meta(ScopedModel.Meta):
        ordering = ["-id"]
        indexes = [models.Index(fields=["workspace_id", "-id"], name="audit_sign_off_by_time")]
        constraints = [
            models.UniqueConstraint(
                fields=["sent_file_id", "signed_by_id"], name="audit_sign_off_file_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.signed_by}, {self.signed_at:%Y-%m-%d}"
