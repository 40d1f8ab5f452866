"""Model providers that the platform's owner shares with workspaces."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from workspaces.secrets import EncryptedTextField


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, in lower case."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


class OfferedModels(models.TextChoices):
    """Which models of a shared provider workspaces may use."""

    ALL = "", _("All models")
    DEFAULT = "default", _("The default model only")
    CHOSEN = "chosen", _("Chosen models")


class SharedProvider(models.Model):
    """An OpenAI-compatible endpoint with the platform's key.

    Each workspace that it is given to has a `ModelProvider` that points here and has neither address nor key.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True, editable=False)
    updated_at = models.DateTimeField(auto_now=True, editable=False)
    name = models.CharField(max_length=80)
    base_url = models.URLField(_("base URL"), max_length=500)
    api_key = EncryptedTextField(_("API key"))
    default_model = models.CharField(max_length=200)
    is_active = models.BooleanField(default=True)
    is_for_all = models.BooleanField(_("for every workspace"), default=False)
    most_at_once = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    most_a_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(100_000)]
    )

    offer = models.CharField(
        max_length=8,
        blank=True,
        choices=OfferedModels.choices,
        default=OfferedModels.ALL.value,
        db_default=OfferedModels.ALL.value,
    )
    chosen_models = models.JSONField(default=list, db_default=[], blank=True)
    """Names. They count where the offer is `CHOSEN`."""

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(Lower("name"), name="shared_provider_name_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def origin(self) -> str:
        """Scheme, host and port: a stored key goes nowhere else."""
        return origin_of(self.base_url)

    @property
    def offered_models(self) -> list[str] | None:
        """What workspaces may use, if nothing else is said of one by name; None: every model."""
        if self.offer == OfferedModels.ALL:
            return None
        return (
            [self.default_model]
            if self.offer == OfferedModels.DEFAULT
            else list(self.chosen_models)
        )


class WithheldReason(models.TextChoices):
    """Why a workspace cannot use what was shared with it."""

    NO = "", _("It can")
    SWITCHED_OFF = "off", _("The platform's owner has switched it off")
    WITHDRAWN = "withdrawn", _("The platform's owner has withdrawn it from this workspace")
