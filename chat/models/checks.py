"""Checks of buds: test questions with what is expected, and how their runs went."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.check_shapes import MOST_CHECKS, CheckShape
from chat.models.buds import Bud
from chat.models.conversations import Conversation
from chat.models.visibility import OfBudQuerySet
from workspaces.scoping import WorkspaceModel


class BudCheckQuerySet(OfBudQuerySet["BudCheck"]):
    def of(self, bud: Bud) -> BudCheckQuerySet:
        """Those of a bud, the oldest first; a draft has those of its bud."""
        rows = self.filter(bud_id=bud.draft_of_id or bud.pk)
        return rows.order_by("id")[:MOST_CHECKS]


class BudCheck(WorkspaceModel):
    """A question to a bud, and what its answer has to do."""

    bud = models.ForeignKey(Bud, on_delete=models.CASCADE, related_name="checks")
    question = models.TextField(_("question"))
    calls = models.JSONField(
        _("expected calls"), default=list, blank=True, help_text=_("Tools, with some arguments.")
    )
    contains = models.JSONField(_("words of the answer"), default=list, blank=True)
    excludes = models.JSONField(_("words the answer must not have"), default=list, blank=True)
    criterion = models.CharField(
        _("criterion"),
        max_length=500,
        blank=True,
        default="",
        help_text=_("A sentence that a model judges the answer by."),
    )
    recordings = models.JSONField(
        default=list,
        blank=True,
        help_text=_("What tools that may change data give, in place of being called."),
    )
    version = models.PositiveIntegerField(
        default=1,
        db_default=1,
        editable=False,
        help_text=_("Grows with each change, so that nobody replaces what they have not seen."),
    )

    objects = models.Manager.from_queryset(BudCheckQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        verbose_name = _("check")

    def __str__(self) -> str:
        return self.question[:80]

    @property
    def shape(self) -> CheckShape:
        """What it consists of, without its place."""
        return CheckShape.model_validate(
            {name: getattr(self, name) for name in CheckShape.model_fields}
        )


class Repeat(models.TextChoices):
    """How often checks run by themselves."""

    NEVER = "", _("Never")
    DAY = "day", _("Every day")
    WEEK = "week", _("Every week")


class CheckPlan(WorkspaceModel):
    """When a bud's checks run without somebody asking for it."""

    bud = models.OneToOneField(Bud, on_delete=models.CASCADE, related_name="check_plan")
    before_saving = models.BooleanField(
        _("before saving"),
        default=False,
        help_text=_("A change is saved after they have passed with it, or if somebody insists."),
    )
    every = models.CharField(
        _("on a schedule"),
        max_length=4,
        choices=Repeat.choices,
        blank=True,
        default=Repeat.NEVER.value,
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """With whose rights and accounts they run by themselves."""
    next_at = models.DateTimeField(null=True, db_index=True)
    trouble = models.CharField(
        max_length=300,
        blank=True,
        default="",
        help_text=_("Why they did not run when they were due."),
    )

    objects = models.Manager.from_queryset(OfBudQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("schedule of checks")

    def __str__(self) -> str:
        return f"{self.bud_id}: {self.every or 'never'}"


class RunStatus(models.TextChoices):
    """How a run of checks is."""

    RUNNING = "running", _("Running")
    COMPLETED = "completed", _("Completed")
    CANCELLED = "cancelled", _("Cancelled")


class CheckRun(WorkspaceModel):
    """All checks of a bud, run once."""

    bud = models.ForeignKey(Bud, on_delete=models.CASCADE, related_name="check_runs")
    version = models.PositiveIntegerField(
        null=True, help_text=_("The bud's version that was checked. Empty: an unsaved draft.")
    )
    draft = models.ForeignKey(
        Bud,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text=_("The bud as it is checked, while the run lasts."),
    )
    checked = models.CharField(max_length=64, default="", db_default="", editable=False)
    """The digest of what was checked, with which checks (`services.check_demands`)."""
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """With whose rights and accounts tools are called."""
    is_scheduled = models.BooleanField(default=False, db_default=False)
    status = models.CharField(
        max_length=10, choices=RunStatus.choices, default=RunStatus.RUNNING.value
    )
    note = models.CharField(max_length=300, blank=True, default="", help_text=_("Why it ended."))
    total = models.PositiveSmallIntegerField(default=0)
    passed = models.PositiveSmallIntegerField(default=0)
    finished_at = models.DateTimeField(null=True)

    objects = models.Manager.from_queryset(OfBudQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["bud"],
                condition=models.Q(status=RunStatus.RUNNING.value),
                name="check_run_one_of_bud",
            )
        ]
        indexes = [models.Index(fields=["bud", "-id"], name="check_runs_of_bud")]

    def __str__(self) -> str:
        return f"run {self.pk} ({self.status})"


class ResultStatus(models.TextChoices):
    """How one check of a run is."""

    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    JUDGING = "judging", _("Being judged")
    PASSED = "passed", _("Passed")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Not run")


class CheckResultQuerySet(OfBudQuerySet["CheckResult"]):
    bud = "run__bud"


class CheckResult(WorkspaceModel):
    """How one check went in a run."""

    run = models.ForeignKey(CheckRun, on_delete=models.CASCADE, related_name="results")
    bud_check = models.ForeignKey(
        BudCheck, on_delete=models.SET_NULL, null=True, related_name="results"
    )
    expected = models.JSONField(help_text=_("The check as it was then."))
    status = models.CharField(
        max_length=10, choices=ResultStatus.choices, default=ResultStatus.WAITING.value
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    begun_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    faults = models.JSONField(default=list, help_text=_("Why it failed, in sentences."))
    notes = models.JSONField(default=list, help_text=_("What else is to be known of it."))
    answer = models.TextField(blank=True, default="")
    judged = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text=_("What the model that judged the answer said of it."),
    )
    calls = models.JSONField(default=list, help_text=_("What the bud called."))
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    prompt_tokens = models.PositiveIntegerField(
        default=0, db_default=0, help_text=_("Of the answer and of its verdict.")
    )
    cached_tokens = models.PositiveIntegerField(default=0, db_default=0)
    completion_tokens = models.PositiveIntegerField(default=0, db_default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, null=True)

    objects = models.Manager.from_queryset(CheckResultQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["conversation"],
                condition=models.Q(conversation__isnull=False),
                name="check_of_conversation",
            )
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.status}"
