"""Personal data that can be recognised by its shape, in texts and in numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop

Detector = Callable[[str], list[tuple[int, int]]]
"""Gives the (start, end) of each find in a text."""

# Each is unambiguous: a foreign text must not make one try the same characters in many ways.
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,8}"
)
_DIGITS = re.compile(r"(?<![\w.])\d(?:[ -]?\d){11,18}(?![\w])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_PHONE = re.compile(r"(?<![\w+])\+\d(?:[ ./()-]{0,2}\d){6,14}(?!\w)")
_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_LETTERS_AS_NUMBERS = str.maketrans({chr(65 + place): str(10 + place) for place in range(26)})


def is_card_number(digits: str) -> bool:
    """Whether 12 to 19 digits carry a card's check digit. Source: ISO/IEC 7812-1, annex B (Luhn)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0 and len(set(digits)) > 1


def is_iban(text: str) -> bool:
    """Whether a text carries an IBAN's check digits. Source: ISO 13616, ISO 7064 (MOD 97-10)."""
    moved = text[4:] + text[:4]
    return 15 <= len(text) <= 34 and int(moved.translate(_LETTERS_AS_NUMBERS)) % 97 == 1


def _spans(pattern: re.Pattern[str], check: Callable[[str], bool] | None = None) -> Detector:
    def find(text: str) -> list[tuple[int, int]]:
        return [
            match.span()
            for match in pattern.finditer(text)
            if check is None or check(re.sub(r"[ -]", "", match[0]))
        ]

    return find


DETECTORS: Final[Mapping[str, tuple[str, Detector]]] = MappingProxyType(
    {
        "email": (gettext_noop("E-mail addresses"), _spans(_EMAIL)),
        "card": (gettext_noop("Payment card numbers"), _spans(_DIGITS, is_card_number)),
        "iban": (gettext_noop("Bank accounts (IBAN)"), _spans(_IBAN, is_iban)),
        "phone": (gettext_noop("Telephone numbers with a country code"), _spans(_PHONE)),
        "ssn": (gettext_noop("US social security numbers"), _spans(_SSN)),
    }
)
"""Name → words for people, detector."""
