"""What fields for numbers say of a number that they cannot take: the framework's own texts are not written like ours."""

from __future__ import annotations

from typing import Any

from django.core import validators
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy


def say_number_faults_plainly() -> None:
    """Give the framework's validators of numbers our words, for forms and rows alike."""
    validators.MinValueValidator.message = _("Enter %(limit_value)s or more.")
    validators.MaxValueValidator.message = _("Enter %(limit_value)s or less.")
    texts: Any = {
        "max_digits": ngettext_lazy(
            "Enter at most %(max)s digit.", "Enter at most %(max)s digits.", "max"
        ),
        "max_decimal_places": ngettext_lazy(
            "Enter at most %(max)s digit after the decimal point.",
            "Enter at most %(max)s digits after the decimal point.",
            "max",
        ),
        "max_whole_digits": ngettext_lazy(
            "Enter at most %(max)s digit before the decimal point.",
            "Enter at most %(max)s digits before the decimal point.",
            "max",
        ),
    }
    validators.DecimalValidator.messages |= texts
