"""What a form says of a number that it cannot take."""

from __future__ import annotations

from django import forms


class Numbers(forms.Form):
    """One of each kind."""

    least = forms.IntegerField(min_value=1)
    most = forms.IntegerField(max_value=9)
    fine = forms.DecimalField(max_digits=4, decimal_places=2)
    long = forms.DecimalField(max_digits=3)
    large = forms.DecimalField(max_digits=4, decimal_places=3)


def test_numbers_out_of_bounds_are_told_in_plain_words() -> None:
    """REL-3196: what to enter, also after the decimal point."""
    given = {"least": "0", "most": "10", "fine": "1.234", "long": "1234", "large": "12.3"}
    faults = Numbers(given).errors
    assert {name: list(texts) for name, texts in faults.items()} == {
        "least": ["Enter 1 or more."],
        "most": ["Enter 9 or less."],
        "fine": ["Enter at most 2 digits after the decimal point."],
        "long": ["Enter at most 3 digits."],
        "large": ["Enter at most 1 digit before the decimal point."],
    }
