"""Devices that people are notified on while Trellis is closed, and what is on its way to them."""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from workspaces.delivery.outbox import Delivery
from workspaces.scoping import PersonalQuerySet, WorkspaceModel
from workspaces.secrets import EncryptedTextField


class PushDeviceQuerySet(PersonalQuerySet["PushDevice"]):
    def living(self) -> PushDeviceQuerySet:
        """Those whose person is still signed in there."""
        return self.filter(models.Q(session=None) | models.Q(session__expire_date__gt=Now()))


class PushDevice(WorkspaceModel):
    """A browser of a person that takes notifications of one workspace. It goes with the session it was added in."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    session = models.ForeignKey(
        Session,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        editable=False,
        help_text=_("None: a program added it."),
    )
    name = models.CharField(_("device"), max_length=100, editable=False)
    endpoint = EncryptedTextField(
        _("address at the push service"), help_text=_("Whoever knows it can write there.")
    )
    endpoint_digest = models.CharField(max_length=64, editable=False)
    p256dh = models.CharField(_("public key"), max_length=100, editable=False)
    auth = EncryptedTextField(_("secret"))
    key_id = models.CharField(
        max_length=32, editable=False, help_text=_("Of our keys, the one it takes messages from.")
    )
    shows_titles = models.BooleanField(_("show titles of chats"), default=False)
    told_until = models.DateTimeField(
        editable=False, help_text=_("What began to wait, or ended, before that was told.")
    )
    last_told_at = models.DateTimeField(null=True, editable=False)
    last_error = models.CharField(max_length=200, blank=True, editable=False)
    tested_at = models.DateTimeField(null=True, editable=False)

    objects = models.Manager.from_queryset(PushDeviceQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "endpoint_digest"], name="push_device_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class PushMessage(Delivery):
    """A notification on its way. What it tells is read when it is sent, so it never tells what is no news any more."""

    device = models.ForeignKey(PushDevice, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(help_text=_("It tells what began to wait, or ended, after that …"))
    until = models.DateTimeField(help_text=_("… and no later than that."))

    class Meta(Delivery.Meta):
        abstract = False
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="push_due")]

    def __str__(self) -> str:
        return str(self.pk)
