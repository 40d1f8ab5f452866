"""Mails that remind people of what waits for them, and what they chose about those."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.delivery.outbox import Delivery
from workspaces.scoping import PersonalManager, WorkspaceModel


class ReminderChoice(WorkspaceModel):
    """How one person wants to be reminded in one workspace. Who never chose has no row until the first mail."""

    class After(models.IntegerChoices):
        """Minutes that something waits before a mail is sent."""

        NEVER = 0, _("Never")
        FIVE_MINUTES = 5, _("After 5 minutes")
        QUARTER = 15, _("After 15 minutes")
        HOUR = 60, _("After an hour")
        FOUR_HOURS = 240, _("After 4 hours")
        DAY = 1440, _("After a day")

    class About(models.TextChoices):
        """What mails tell of, each kind in a mail of its own."""

        WAITING = "waiting", _("What waits")
        ANSWERS = "answers", _("Finished answers")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    mail_after = models.PositiveSmallIntegerField(
        _("mail me what waits for me"), choices=After.choices, default=After.HOUR
    )
    answers_after = models.PositiveSmallIntegerField(
        _("mail me finished answers"),
        choices=After.choices,
        default=After.NEVER,
        db_default=After.NEVER.value,
    )
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_to = models.TimeField(_("quiet to"), null=True, blank=True)
    # Browsers tell it, and the quiet hours have no browser to ask; see `zone`.
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    told_until = models.DateTimeField(
        null=True, editable=False, help_text=_("What began to wait before that was mailed.")
    )
    answers_told_until = models.DateTimeField(
        null=True, editable=False, help_text=_("Answers that ended before that were mailed.")
    )

    objects = PersonalManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "owner"], name="reminder_choice_once")
        ]

    def __str__(self) -> str:
        return str(self.After(self.mail_after).label)

    @property
    def zone(self) -> str:
        """The time zone of the quiet hours: the one that the person chose for all of Trellis, else the one from here."""
        return self.owner.time_zone or self.time_zone

    def after(self, about: ReminderChoice.About) -> int:
        """Minutes after which these are mailed; 0: never."""
        return self.mail_after if about == self.About.WAITING else self.answers_after

    def told_at(self, about: ReminderChoice.About) -> datetime | None:
        """Up to when these were mailed."""
        return self.told_until if about == self.About.WAITING else self.answers_told_until


class ReminderMail(Delivery):
    """A mail on its way. What it lists is read when it is sent, so it never names what no longer waits."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    about = models.CharField(
        max_length=10,
        choices=ReminderChoice.About.choices,
        default=ReminderChoice.About.WAITING,
        db_default=ReminderChoice.About.WAITING.value,
    )
    since = models.DateTimeField(help_text=_("It lists what began to wait, or ended, after that …"))
    until = models.DateTimeField(help_text=_("… and no later than that."))

    class Meta(Delivery.Meta):
        abstract = False
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="reminder_due")]

    def __str__(self) -> str:
        return str(self.pk)
