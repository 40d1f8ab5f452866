"""What well-known providers asked for their models on a day: used where a workspace has entered nothing. Pure.

In US dollars per million tokens, as the providers' price pages told on `AS_OF`, for their standard service. A model
that is not here has no known price. Prices that a workspace enters for a model come before these.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple
from urllib.parse import urlsplit

AS_OF: Final = date(2025, 11, 1)


class ListPrice(NamedTuple):
    """Per million tokens."""

    prompt: Decimal
    cached: Decimal
    completion: Decimal


def _prices(text: str) -> dict[str, ListPrice]:
    found = {}
    for line in text.strip().splitlines():
        name, *amounts = line.split()
        found[name] = ListPrice(*(Decimal(amount) for amount in amounts))
    return found


_OF_HOST: Final = {
    "api.openai.com": _prices("""
        gpt-5         1.25   0.125   10
        gpt-5-mini    0.25   0.025   2
        gpt-5-nano    0.05   0.005   0.4
        gpt-4.1       2      0.5     8
        gpt-4.1-mini  0.4    0.1     1.6
        gpt-4.1-nano  0.1    0.025   0.4
        gpt-4o        2.5    1.25    10
        gpt-4o-mini   0.15   0.075   0.6
        o3            2      0.5     8
        o4-mini       1.1    0.275   4.4
        text-embedding-3-small  0.02  0.02  0
        text-embedding-3-large  0.13  0.13  0
        text-embedding-ada-002  0.1   0.1   0
    """),
    "api.anthropic.com": _prices("""
        claude-opus-4-1    15   1.5   75
        claude-sonnet-4-5  3    0.3   15
        claude-sonnet-4    3    0.3   15
        claude-haiku-4-5   1    0.1   5
    """),
    "generativelanguage.googleapis.com": _prices("""
        gemini-2.5-flash       0.3   0.03   2.5
        gemini-2.5-flash-lite  0.1   0.01   0.4
    """),
}
"""Models whose price depends on the length of the prompt are left out."""
_DATED: Final = re.compile(r"-(20\d{2}-?\d{2}-?\d{2}|latest)\Z")


def list_price(base_url: str, model: str) -> ListPrice | None:
    """The published price of a model at its own provider; None where it is not known."""
    prices = _OF_HOST.get(urlsplit(base_url).hostname or "", {})
    name = model.removeprefix("models/")
    return prices.get(name) or prices.get(_DATED.sub("", name))
