"""The forms of spending limits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django import forms
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models import SpendingPolicy
from chat.models.spending import MOST_COST, MOST_TOKENS, USUAL_WARNING
from chat.providers.base import MonthLimit
from chat.services.spending_limits import LimitsDraft
from workspaces.pages.numbers import ExactNumberField, WholeNumberField
from workspaces.pages.seen_values import NoticesOthers

_WARNING: Final = _(
    "In per cent of a limit. Admins get a notice of the workspace's limit. Members read of their own in the chat."
)


def cost_field(label: Any, help_text: Any) -> ExactNumberField:
    """A limit on cost."""
    return ExactNumberField(
        label=label,
        required=False,
        min_value=0,
        max_value=MOST_COST,
        max_digits=14,
        decimal_places=6,
        help_text=help_text,
    )


def token_field(label: Any, help_text: Any = "") -> WholeNumberField:
    """A limit on tokens."""
    return WholeNumberField(
        label=label, required=False, min_value=0, max_value=MOST_TOKENS, help_text=help_text
    )


def typed_cost(cost: Decimal | None) -> str | None:
    """A cost as somebody would type it, without zeros at its end."""
    return None if cost is None else f"{cost.normalize():f}"


class SpendingForm(NoticesOthers, forms.Form):
    """The limits of a workspace and of each member."""

    cost = cost_field(
        _("Workspace: cost a month"),
        _("In US dollars. Leave empty for no limit. With 0, no model answers."),
    )
    tokens = token_field(
        _("Workspace: tokens a month"),
        _("Tokens that models read and write together. Leave empty for no limit."),
    )
    member_cost = cost_field(
        _("Each member: cost a month"),
        _("For members without a limit of their own. Leave empty for no limit."),
    )
    member_tokens = token_field(_("Each member: tokens a month"))
    warn_percent = forms.IntegerField(
        label=_("Warn at"), min_value=1, max_value=100, help_text=_WARNING
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        max_length=64,
        widget=forms.TextInput(attrs={"list": "time-zones", "autocomplete": "off"}),
        help_text=_("Months begin at midnight there."),
    )

    def __init__(self, *args: Any, policy: SpendingPolicy, time_zone: str, **options: Any) -> None:
        """Show the stored limits.

        Args:
            time_zone: what is proposed where nothing is stored yet.
        """
        names = ("tokens", "member_tokens")
        is_new = policy._state.adding
        options["initial"] = {
            **{name: getattr(policy, name) for name in names},
            "cost": typed_cost(policy.cost),
            "member_cost": typed_cost(policy.member_cost),
            "warn_percent": policy.warn_percent or USUAL_WARNING,
            "time_zone": (time_zone if is_new else policy.time_zone) or "UTC",
        }
        super().__init__(*args, **options)

    def draft(self) -> LimitsDraft:
        """What was entered, once it is valid."""
        given = self.cleaned_data
        return LimitsDraft(
            workspace=MonthLimit(cost=given["cost"], tokens=given["tokens"]),
            member=MonthLimit(cost=given["member_cost"], tokens=given["member_tokens"]),
            warn_percent=given["warn_percent"],
            time_zone=given["time_zone"].strip(),
        )


class WhichLimit(models.TextChoices):
    """The limit that holds for one member."""

    USUAL = "usual", _("The limit of all members")
    OWN = "own", _("A limit of their own")
    NONE = "none", _("No limit")


class MemberLimitForm(NoticesOthers, forms.Form):
    """The limit of one member."""

    which = forms.ChoiceField(
        label=_("Limit of this member"), choices=WhichLimit.choices, widget=forms.RadioSelect
    )
    cost = cost_field(_("Cost a month"), _("Of a limit of their own. In US dollars."))
    tokens = token_field(_("Tokens a month"), _("Of a limit of their own."))

    def __init__(self, *args: Any, own: MonthLimit | None, **options: Any) -> None:
        """Show what holds.

        Args:
            own: what was set for them; None: nothing.
        """
        which = WhichLimit.USUAL
        if own is not None:
            which = WhichLimit.NONE if own.is_none else WhichLimit.OWN
        options["initial"] = {
            "which": which.value,
            "cost": typed_cost(own.cost) if own else None,
            "tokens": own.tokens if own else None,
        }
        super().__init__(*args, **options)

    def clean(self) -> dict[str, Any]:
        """A limit of their own is one."""
        given = super().clean() or {}
        is_own = given.get("which") == WhichLimit.OWN
        if is_own and given.get("cost") is None and given.get("tokens") is None and not self.errors:
            self.add_error("cost", _("Enter a cost or a number of tokens, or choose “No limit”."))
        return given

    def limit(self) -> MonthLimit | None:
        """What was entered, once it is valid; None: the limit of all members."""
        given = self.cleaned_data
        if given["which"] == WhichLimit.USUAL:
            return None
        if given["which"] == WhichLimit.NONE:
            return MonthLimit()
        return MonthLimit(cost=given["cost"], tokens=given["tokens"])
