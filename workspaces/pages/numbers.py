"""Fields for numbers that take them as the product writes them, such as "1,048,576" or "1 048 576"."""

from __future__ import annotations

from typing import Any

from django import forms

from workspaces.words.formats import typed_number


class _Typed:
    """The browser's own field for numbers takes no groups, so these are fields for text."""

    def __init__(self, **options: Any) -> None:
        # Django's fields for fractions are fields for whole numbers too.
        has_fraction = isinstance(self, (forms.FloatField, forms.DecimalField))
        keys = "decimal" if has_fraction else "numeric"
        super().__init__(**{"widget": forms.TextInput(attrs={"inputmode": keys}), **options})

    def to_python(self, value: Any) -> Any:
        """Read it with or without groups.

        Raises:
            ValidationError: it is no such number.
        """
        typed = typed_number(value) if isinstance(value, str) else value
        return super().to_python(typed)  # type: ignore[misc]  # the field's


class WholeNumberField(_Typed, forms.IntegerField):
    """A whole number."""


class NumberField(_Typed, forms.FloatField):
    """A number that may have a fraction."""


class ExactNumberField(_Typed, forms.DecimalField):
    """A number that is kept with all its decimals."""
