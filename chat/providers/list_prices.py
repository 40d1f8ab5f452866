"""What well-known providers ask for their models: used where a workspace has entered nothing. Pure.

In US dollars per million tokens, as the providers' price pages told on the day of each list, for their standard service.
A model that is in no list has no known price. Prices that a workspace enters for a model come before these.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple
from urllib.parse import urlsplit


class Rates(NamedTuple):
    """Per million tokens."""

    prompt: Decimal
    cached: Decimal
    completion: Decimal


class ListPrice(NamedTuple):
    """What a model costs."""

    rates: Rates
    long_above: int | None
    """Tokens of a prompt. The whole of a request with a longer one goes by the rates below. None: all cost alike."""
    long_rates: Rates | None
    listed_on: date
    """The day on which the provider's page said so."""


class _PriceList(NamedTuple):
    host: str
    read_on: date
    rows: str
    """A line for each model: prompt, cached and completion; then, if long prompts cost more, from where, and the same."""
    until: date | None = None
    """The last day of an offer; the list below it holds what comes then."""


_OPENAI: Final = "api.openai.com"
_ANTHROPIC: Final = "api.anthropic.com"
_GEMINI: Final = "generativelanguage.googleapis.com"

_LISTS: Final = (
    _PriceList(
        _OPENAI,
        date(2026, 11, 18),
        """
        gpt-6.2-astra  8  0.4  40  272000  16  0.8  60
        gpt-6.2-sol    2  0.1  10  272000  4   0.2  15
        """,
    ),
    _PriceList(
        _OPENAI,
        date(2026, 10, 27),
        """
        gpt-6.1-terra  1  0.05  5  272000  2  0.1  7.5
        """,
    ),
    _PriceList(
        _OPENAI,
        date(2026, 10, 1),
        """
        gpt-6.1-sol  2    0.1   10   272000  4    0.2   15
        gpt-6-astra  10   1     50   272000  20   2     75
        gpt-6-sol    2    0.2   10   272000  4    0.4   15
        gpt-6-luna   0.1  0.01  0.5  272000  0.2  0.02  0.75
        """,
    ),
    _PriceList(
        _OPENAI,
        date(2026, 9, 7),
        """
        gpt-5.6-sol    4     0.4    20   272000  8    0.8   30
        gpt-5.6-terra  2     0.2    12   272000  4    0.4   18
        gpt-5.6-luna   0.2   0.02   1.2  272000  0.4  0.04  1.8
        gpt-5.5        5     0.5    30   272000  10   1     45
        gpt-5.4        2.5   0.25   15   272000  5    0.5   22.5
        gpt-5.4-mini   0.75  0.075  4.5
        gpt-5.4-nano   0.2   0.02   1.25
        gpt-5.2        1.75  0.175  14
        gpt-5.1        1.25  0.125  10
        gpt-5          1.25  0.125  10
        gpt-5-mini     0.25  0.025  2
        gpt-5-nano     0.05  0.005  0.4
        gpt-4.1        2     0.5    8
        gpt-4.1-mini   0.4   0.1    1.6
        gpt-4.1-nano   0.1   0.025  0.4
        gpt-4o         2.5   1.25   10
        gpt-4o-mini    0.15  0.075  0.6
        o3             2     0.5    8
        o4-mini        1.1   0.275  4.4
        """,
    ),
    _PriceList(
        _OPENAI,
        date(2026, 7, 3),
        """
        text-embedding-3-small  0.02  0.02  0
        """,
    ),
    _PriceList(
        _OPENAI,
        date(2026, 4, 29),
        """
        text-embedding-3-large  0.13  0.13  0
        text-embedding-ada-002  0.1   0.1   0
        """,
    ),
    _PriceList(
        _ANTHROPIC,
        date(2026, 10, 24),
        """
        claude-fable-5-1   10   0.25  50
        claude-fable-5     10   1     50
        claude-opus-5-5    4    0.2   20
        claude-opus-5      5    0.5   25
        claude-opus-4-8    5    0.5   25
        claude-opus-4-7    5    0.5   25
        claude-opus-4-6    5    0.5   25
        claude-opus-4-5    5    0.5   25
        claude-opus-4-1    15   1.5   75
        claude-sonnet-5-5  2    0.1   10
        claude-sonnet-5    2    0.2   10
        claude-sonnet-4-6  3    0.3   15
        claude-sonnet-4-5  3    0.3   15
        claude-sonnet-4    3    0.3   15
        claude-haiku-5-5   0.1  0.01  0.5  100000  0.5  0.05  2.5
        claude-haiku-4-5   1    0.1   5
        """,
    ),
    _PriceList(
        _GEMINI,
        date(2026, 10, 7),
        """
        gemini-3.8-flash  0.75  0.075  3.75
        gemini-3.7-flash  0.75  0.075  3.75
        gemini-3.6-flash  0.75  0.075  3.75
        """,
        until=date(2026, 12, 31),
    ),
    _PriceList(
        _GEMINI,
        date(2026, 9, 7),
        """
        gemini-3.8-flash        1.5   0.15   7.5
        gemini-3.7-flash        1.5   0.15   7.5
        gemini-3.6-flash        1.5   0.15   7.5
        gemini-3.5-flash        1.5   0.15   9
        gemini-3.1-flash-lite   0.25  0.025  1.5
        gemini-3.1-pro-preview  2     0.2    12  200000  4    0.4   18
        gemini-2.5-pro          1.25  0.125  10  200000  2.5  0.25  15
        gemini-2.5-flash        0.3   0.03   2.5
        gemini-2.5-flash-lite   0.1   0.01   0.4
        """,
    ),
)
"""The newest of each provider first."""


def _read(listed: _PriceList) -> dict[str, ListPrice]:
    found = {}
    for line in listed.rows.strip().splitlines():
        name, *amounts = line.split()
        numbers = [Decimal(amount) for amount in amounts]
        longer = numbers[3:]
        found[name] = ListPrice(
            rates=Rates(*numbers[:3]),
            long_above=int(longer[0]) if longer else None,
            long_rates=Rates(*longer[1:]) if longer else None,
            listed_on=listed.read_on,
        )
    return found


_PRICES: Final = [(listed, _read(listed)) for listed in _LISTS]
_DATED: Final = re.compile(r"-(20\d{2}-?\d{2}-?\d{2}|latest)\Z")


def name_without_date(model: str) -> str:
    """A model's name without the day of a snapshot of it, and without Gemini's prefix."""
    return _DATED.sub("", model.removeprefix("models/"))


def list_price(base_url: str, model: str, *, on: date) -> ListPrice | None:
    """The published price of a model at its own provider on a day; None where it is not known."""
    host = urlsplit(base_url).hostname
    names = (model.removeprefix("models/"), name_without_date(model))
    for listed, prices in _PRICES:
        if listed.host == host and (listed.until is None or on <= listed.until):
            for one in names:
                if one in prices:
                    return prices[one]
    return None


def listed_models(host: str) -> list[str]:
    """The names of a provider's models that answer, as its lists have them."""
    found = (
        name
        for listed, prices in _PRICES
        if listed.host == host
        for name, price in prices.items()
        if price.rates.completion
    )
    return list(dict.fromkeys(found))
