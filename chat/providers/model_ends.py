"""On which day well-known providers end their models, as their pages told on 10 November 2026. Pure.

OpenAI tells it in its list of models too, which is newer and comes first where a provider is tested.
"""

from __future__ import annotations

from datetime import date
from typing import Final
from urllib.parse import urlsplit

from chat.providers.list_prices import name_without_date

_ENDS: Final = {
    ("api.openai.com", date(2026, 10, 23)): (
        *("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4.1-nano", "o1", "o1-pro", "o3-mini"),
        "o4-mini",
    ),
    ("api.openai.com", date(2026, 12, 11)): (
        *("gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-pro", "o3", "o3-pro"),
    ),
    ("api.openai.com", date(2027, 1, 14)): ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini"),
    ("api.openai.com", date(2027, 4, 1)): ("gpt-5.1", "gpt-5.3-codex", "gpt-5.4-nano"),
    ("api.anthropic.com", date(2026, 6, 15)): ("claude-opus-4", "claude-sonnet-4"),
    ("generativelanguage.googleapis.com", date(2026, 12, 1)): (
        *("gemini-2.5-flash", "gemini-2.5-pro"),
    ),
}
_END_OF: Final = {(host, name): day for (host, day), names in _ENDS.items() for name in names}


def end_of(base_url: str, model: str) -> date | None:
    """The day from which the provider serves a model no more; None where none is known."""
    return _END_OF.get((urlsplit(base_url).hostname or "", name_without_date(model)))
