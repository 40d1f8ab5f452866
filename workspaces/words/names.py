"""Names that people give, such as those of buds and folders, and their own: what others see of them is all there is."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
"""Controls, marks that turn the text around, and what has no width. Joiners stay, since letters and emoji need them."""
_SHOWN: Final = frozenset("LNPS")
"""Letters, numbers, punctuation and symbols, by Unicode's general category."""
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Fillers of Hangul and Braille's space: letters and a symbol that look like nothing."""


def without_unseen(given: str) -> str:
    """A text without what nobody sees of it."""
    return _UNSEEN.sub("", given)


def seen_name(given: str) -> str:
    """A name without what nobody sees of it; empty if that is all."""
    name = without_unseen(given).strip()
    return name if is_seen(name) else ""


def is_seen(text: str) -> bool:
    """Whether people see anything of a text."""
    return any(one not in _BLANK and unicodedata.category(one)[0] in _SHOWN for one in text)
