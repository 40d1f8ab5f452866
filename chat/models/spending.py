"""Spending limits of a calendar month, and the sums that are held against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.shared_providers import SharedProvider
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User

MOST_COST: Final = 99_999_999
MOST_TOKENS: Final = 10**15
USUAL_WARNING: Final = 80
"""Per cent of a limit."""


def cost_limit() -> Any:
    """A limit on cost, in US dollars. None: no limit; 0: nothing is allowed."""
    return models.DecimalField(
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MOST_COST)],
    )


def token_limit() -> Any:
    """A limit on tokens, those that a model reads and those that it writes together. None and 0 as above."""
    return models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MOST_TOKENS)],
    )


class SpendingPolicy(WorkspaceModel):
    """The limits of a workspace, and when its months begin."""

    cost = cost_limit()
    tokens = token_limit()
    member_cost = cost_limit()
    member_tokens = token_limit()
    warn_percent = models.PositiveSmallIntegerField(
        default=USUAL_WARNING,
        db_default=USUAL_WARNING,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Of a limit; whoever it concerns is told then."),
    )
    time_zone = models.CharField(
        max_length=64, blank=True, help_text=_("In which months begin. Empty: UTC.")
    )

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("spending limits")
        constraints = [
            models.UniqueConstraint(fields=["workspace"], name="spending_policy_once"),
        ]

    def __str__(self) -> str:
        return "spending limits"


class MemberSpendingLimit(WorkspaceModel):
    """What one member may spend, in place of what all members may."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    cost = cost_limit()
    tokens = token_limit()

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("spending limit of a member")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "person"], name="member_limit_once"),
        ]

    def __str__(self) -> str:
        return str(self.person)


class MonthlySpendingQuerySet(WorkspaceQuerySet["MonthlySpending"]):
    def visible_to(self, user: User) -> MonthlySpendingQuerySet:
        """One's own."""
        return super().visible_to(user).filter(person=user)

    def of_workspace(self) -> MonthlySpendingQuerySet:
        """The sums of whole workspaces."""
        return self.filter(person=None, shared=None)


class MonthlySpending(WorkspaceModel):
    """What models cost in one month: a workspace, one of its people, or what it used of a shared provider.

    The transaction that stores what a request used adds to these rows, so nobody adds up turns. Chats may be deleted;
    what they cost stays here.
    """

    # Large only for the statement that is compiled once, whose place for a number is larger than others hold.
    month = models.BigIntegerField(help_text=_("As 202611."))
    subject = models.UUIDField(
        help_text=_("Whose: the workspace, the person or the shared provider.")
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    shared = models.ForeignKey(
        SharedProvider, on_delete=models.CASCADE, null=True, related_name="+"
    )
    requests = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    estimated_tokens = models.BigIntegerField(
        default=0, help_text=_("Of them: those that no provider has told.")
    )
    unpriced_tokens = models.BigIntegerField(
        default=0,
        help_text=_("Of them: those whose price is not known, so the cost leaves them out."),
    )
    cost = models.DecimalField(max_digits=18, decimal_places=6, default=0)
    told_percent = models.PositiveSmallIntegerField(
        default=0, help_text=_("Of its limit: what people were told last, in this month.")
    )

    objects = models.Manager.from_queryset(MonthlySpendingQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "month", "subject"], name="monthly_spending_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "month", "-cost", "-tokens", "id"],
                condition=models.Q(person__isnull=False),
                name="spending_of_people",
            ),
            models.Index(
                fields=["shared", "month"],
                condition=models.Q(shared__isnull=False),
                name="spending_of_shared",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.month} of {self.subject}"


class SpendingHold(WorkspaceModel):
    """What one request under way, beside the steps of turns, is believed to use of the limits."""

    person = models.UUIDField(null=True, help_text=_("Who pays; none: nobody in particular."))
    shared = models.UUIDField(null=True, help_text=_("The shared provider that is asked."))
    tokens = models.BigIntegerField()
    cost = models.DecimalField(max_digits=14, decimal_places=6)
    shared_cost = models.DecimalField(
        max_digits=14, decimal_places=6, help_text=_("By the list prices of a shared provider.")
    )
    alive_until = models.DateTimeField(help_text=_("Put off while its process lives."))

    def __str__(self) -> str:
        return f"{self.tokens} tokens held"
